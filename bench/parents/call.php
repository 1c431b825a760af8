<?php
// SPDX-License-Identifier: Apache-2.0
// /WAY/ID: two calls of the backend in turn.
$id = explode("/", $_SERVER["REQUEST_URI"])[2];
for ($n = 0; $n < 2; $n++)
	file_get_contents("http://127.0.0.1:" . $_SERVER["BACKEND"] . "/d/$id/$n");
echo "ok";

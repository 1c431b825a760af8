// SPDX-License-Identifier: Apache-2.0
// main PORT BACKEND-PORT: net/http server and client, two calls in turn.
package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
)

func main() {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 256}}
	call := func(id string, n int) {
		r, err := client.Get(fmt.Sprintf("http://127.0.0.1:%s/d/%s/%d", os.Args[2], id, n))
		if err == nil {
			io.Copy(io.Discard, r.Body)
			r.Body.Close()
		}
	}
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		id := strings.Split(r.URL.Path, "/")[2]
		call(id, 0)
		call(id, 1)
		io.WriteString(w, "ok")
	})
	l, err := net.Listen("tcp", "127.0.0.1:"+os.Args[1])
	if err != nil {
		panic(err)
	}
	fmt.Println("ready")
	http.Serve(l, nil)
}

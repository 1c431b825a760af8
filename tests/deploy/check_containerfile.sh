#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# deploy/image/Containerfile by a real engine, from the last commit: does each step work, does the image hold what `make image`
# makes and no more, does it run? Root, network; minutes. Without the registry its base is made of the archive it is
# made of there. Exit 77: no engine.
set -eu
top=$(cd "$(dirname "$0")/../.." && pwd)
command -v buildah >/dev/null || {
	echo "check-containerfile: skipped: no buildah"
	exit 77
}
name=localhost/ringspan-containerfile:$$ base=docker.io/library/debian:12-slim made=""
d=$(mktemp -d)
end() {
	buildah rm "rs-check-$$" >/dev/null 2>&1 || :
	buildah rmi -f "$name" $made >/dev/null 2>&1 || :
	rm -rf "$d"
}
trap end EXIT
trap 'exit 1' INT TERM

if ! buildah pull -q "$base" >/dev/null 2>&1; then
	command -v mmdebstrap >/dev/null || {
		echo "check-containerfile: skipped: $base cannot be had, nor mmdebstrap to make it with"
		exit 77
	}
	mmdebstrap --quiet --variant=minbase bookworm "$d/base.tar"
	echo "base: $base cannot be had; of Debian's archive"
	c=$(buildah from scratch)
	buildah add -q "$c" "$d/base.tar" / >/dev/null
	buildah commit -q "$c" "$base" >/dev/null
	buildah rm "$c" >/dev/null
	made=$base
	rm "$d/base.tar"
fi
git -C "$top" archive --prefix=src/ HEAD | tar -x -C "$d"
buildah build --isolation chroot --pull-never -q -t "$name" -f "$d/src/deploy/image/Containerfile" "$d/src" >/dev/null
buildah from -q --pull-never --name "rs-check-$$" "$name" >/dev/null
root=$(buildah mount "rs-check-$$")
chroot "$root" /usr/bin/ringspan version
"$top/deploy/image/rootfs" "$top/build/ringspan" "$d/own"
# Libraries' names have versions in them, which are the base's.
for side in "$root" "$d/own"; do
	(cd "$side" && find . -type f | sed 's/\.so[.0-9]*$/.so/; s/-[0-9.]*\.so$/.so/' | sort) >"$d/files.$(basename "$side")"
done
diff "$d/files.$(basename "$root")" "$d/files.own"
[ ! -e "$root/bin/sh" ]
[ "$(buildah inspect --format '{{.OCIv1.Config.Entrypoint}} {{.OCIv1.Config.Cmd}}' "$name")" = "[/usr/bin/ringspan] [run]" ]
echo "the Containerfile's image: $(du -sk "$root" | cut -f1) KB of files, those of \`make image\`"
echo "1 passed, 0 failed, 0 skipped"

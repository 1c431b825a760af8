// SPDX-License-Identifier: Apache-2.0
// Prints the lines of user/go/layouts.def: layouts 1.18 1.19.13 1.27.0 …; each is a release of Go, which the go
// command fetches by itself (GOTOOLCHAIN). Run: cd tests/go/layouts && go run . 1.18.10 1.27.0
package main

import (
	"debug/dwarf"
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

const program = `package main

import "net/http"

func main() { http.ListenAndServeTLS(":0", "", "", nil); http.Get("") }
`

// The fields of struct rs_bpf_go, in their order; the first name that exists counts (HTTP/2 has moved in 1.27).
var fields = [][]string{
	{"runtime.g.goid"},
	{"runtime.m.curg"},
	{"net/http.persistConn.conn"},
	{"net/http.http2serverConn.conn", "net/http/internal/http2.serverConn.conn"},
	{"net/http.http2responseWriter.rws", "net/http/internal/http2.responseWriter.rws"},
	{"net/http.http2responseWriterState.stream", "net/http/internal/http2.responseWriterState.stream"},
	{"net/http.http2stream.id", "net/http/internal/http2.stream.id"},
}

func build(dir, release string) string {
	out := filepath.Join(dir, release)
	cmd := exec.Command("go", "build", "-o", out, "main.go")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOTOOLCHAIN=go"+release, "GOROOT=", "GOFLAGS=-mod=mod")
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		panic(err)
	}
	return out
}

func offsets(path string) map[string]int64 {
	found := map[string]int64{}
	f, err := elf.Open(path)
	if err != nil {
		panic(err)
	}
	d, err := f.DWARF()
	if err != nil {
		panic(err)
	}
	for r := d.Reader(); ; {
		e, err := r.Next()
		if err != nil || e == nil {
			return found
		}
		name, _ := e.Val(dwarf.AttrName).(string)
		if e.Tag != dwarf.TagStructType || !strings.Contains(name, ".") {
			continue
		}
		t, err := d.Type(e.Offset)
		if err != nil {
			continue
		}
		for _, f := range t.(*dwarf.StructType).Field {
			found[name+"."+f.Name] = f.ByteOffset
		}
	}
}

func main() {
	dir, err := os.MkdirTemp("", "layouts")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(program), 0o644); err != nil {
		panic(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module m\ngo 1.18\n"), 0o644); err != nil {
		panic(err)
	}
	for _, release := range os.Args[1:] {
		have := offsets(build(dir, release))
		line := "RS_GO_LAYOUT(" + strings.Split(release, ".")[1]
		for _, names := range fields {
			value := int64(0)
			for _, name := range names {
				if v, ok := have[name]; ok {
					value = v
					break
				}
			}
			line += fmt.Sprintf(", %d", value)
		}
		fmt.Println(line + ")")
	}
}

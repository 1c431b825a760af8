// SPDX-License-Identifier: Apache-2.0
// web PORT [tls] [h1] [BACKEND-URL]: a net/http server. /leaf/ID answers; /turn/ID calls the backend's /leaf/ID/0 and
// /leaf/ID/1 in turn, /both/ID both at once from goroutines of its own, /deep/ID from a deep stack. With tls the
// certificate is made up, with h1 HTTP/2 is not offered. Its own count of what it did: /count.
package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

var failures int64

func certificate() tls.Certificate {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	t := x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"localhost"}}
	der, err := x509.CreateCertificate(rand.Reader, &t, &t, &key.PublicKey, key)
	if err != nil {
		panic(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// The stack grows, and is moved, at depths that no earlier call had.
func deep(n int, f func()) int {
	var room [512]byte
	room[n%512] = byte(n)
	if n == 0 {
		f()
		return int(room[0])
	}
	return deep(n-1, f) + int(room[n%512])
}

func main() {
	var backend string
	secure, h1 := false, false
	for _, a := range os.Args[2:] {
		switch {
		case a == "tls":
			secure = true
		case a == "h1":
			h1 = true
		default:
			backend = a
		}
	}
	transport := &http.Transport{MaxIdleConnsPerHost: 128, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	protos := []string{"h2", "http/1.1"}
	if h1 {
		transport.TLSNextProto = map[string]func(string, *tls.Conn) http.RoundTripper{}
		protos = protos[1:]
	} else {
		transport.ForceAttemptHTTP2 = true
	}
	client := &http.Client{Transport: transport}
	call := func(ctx context.Context, id string, n int) {
		want := fmt.Sprintf("leaf %s/%d", id, n)
		req, _ := http.NewRequestWithContext(ctx, "GET", fmt.Sprintf("%s/leaf/%s/%d", backend, id, n), nil)
		r, err := client.Do(req)
		if err != nil {
			atomic.AddInt64(&failures, 1)
			return
		}
		body, err := io.ReadAll(r.Body)
		r.Body.Close()
		if err != nil || string(body) != want {
			atomic.AddInt64(&failures, 1)
		}
	}
	handler := func(w http.ResponseWriter, r *http.Request) {
		part := strings.SplitN(r.URL.Path, "/", 3)
		if len(part) < 3 {
			part = append(part, "", "")
		}
		id := part[2]
		switch part[1] {
		case "leaf":
			fmt.Fprintf(w, "leaf %s", id)
			return
		case "turn":
			call(r.Context(), id, 0)
			call(r.Context(), id, 1)
		case "deep":
			deep(200+len(id)*50, func() { call(r.Context(), id, 0) })
		case "both":
			var wg sync.WaitGroup
			for i := 0; i < 2; i++ {
				wg.Add(1)
				go func(i int) {
					defer wg.Done()
					call(r.Context(), id, i)
				}(i)
			}
			wg.Wait()
		case "count":
			fmt.Fprintf(w, "%d", atomic.LoadInt64(&failures))
			return
		}
		io.WriteString(w, "ok")
	}
	l, err := net.Listen("tcp", "127.0.0.1:"+os.Args[1])
	if err != nil {
		panic(err)
	}
	fmt.Println("ready")
	server := &http.Server{Handler: http.HandlerFunc(handler)}
	if !secure {
		panic(server.Serve(l))
	}
	server.TLSConfig = &tls.Config{Certificates: []tls.Certificate{certificate()}, NextProtos: protos}
	if h1 {
		server.TLSNextProto = map[string]func(*http.Server, *tls.Conn, http.Handler){}
	}
	panic(server.ServeTLS(l, "", ""))
}

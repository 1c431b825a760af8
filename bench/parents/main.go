// SPDX-License-Identifier: Apache-2.0
// main PORT BACKEND-PORT [tls]: net/http server and client. /r/ID: two calls in turn; /both/ID: at once, from goroutines.
package main

import (
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
	"time"
)

func certificate() tls.Certificate {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	t := x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, &t, &t, &key.PublicKey, key)
	if err != nil {
		panic(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

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
		part := strings.Split(r.URL.Path, "/")
		if part[1] == "both" {
			var all sync.WaitGroup
			for n := 0; n < 2; n++ {
				all.Add(1)
				go func(n int) {
					defer all.Done()
					call(part[2], n)
				}(n)
			}
			all.Wait()
		} else {
			call(part[2], 0)
			call(part[2], 1)
		}
		io.WriteString(w, "ok")
	})
	l, err := net.Listen("tcp", "127.0.0.1:"+os.Args[1])
	if err != nil {
		panic(err)
	}
	fmt.Println("ready")
	if len(os.Args) > 3 {
		l = tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{certificate()}})
	}
	http.Serve(l, nil)
}

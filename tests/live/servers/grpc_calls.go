// SPDX-License-Identifier: Apache-2.0

// gRPC of Go: `server PORT [KEY CERT]` or `client TARGET LOG ROUNDS STREAMS [CERT]`; the calls are those of grpc_calls.py.
package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
)

const service = "test.Calls"

// Messages are bytes: no code is generated.
type raw struct{}

func (raw) Marshal(v any) ([]byte, error)      { return *v.(*[]byte), nil }
func (raw) Unmarshal(data []byte, v any) error { *v.(*[]byte) = append([]byte(nil), data...); return nil }
func (raw) Name() string                       { return "raw" }

func handle(_ any, s grpc.ServerStream) error {
	method, _ := grpc.MethodFromServerStream(s)
	var first []byte
	switch method[len(service)+2:] {
	case "Unary":
		if err := s.RecvMsg(&first); err != nil {
			return err
		}
		return s.SendMsg(&first)
	case "Fails":
		if err := s.RecvMsg(&first); err != nil {
			return err
		}
		code := codes.Internal
		if string(first) == "NOT_FOUND" {
			code = codes.NotFound
		}
		return status.Error(code, "as asked")
	case "Slow":
		s.RecvMsg(&first)
		time.Sleep(500 * time.Millisecond)
		return s.SendMsg(&first)
	case "Many":
		s.RecvMsg(&first)
		n, _ := strconv.Atoi(string(first))
		for i := 0; i < n; i++ {
			m := make([]byte, i*1000)
			if err := s.SendMsg(&m); err != nil {
				return err
			}
		}
		return nil
	case "Collect", "Chat":
		n := 0
		for {
			var m []byte
			err := s.RecvMsg(&m)
			if err == io.EOF {
				break
			} else if err != nil {
				return err
			}
			n++
			if method == "/"+service+"/Chat" {
				s.SendMsg(&m)
			}
		}
		if method == "/"+service+"/Chat" {
			return nil
		}
		m := []byte(strconv.Itoa(n))
		return s.SendMsg(&m)
	case "Forever":
		tick := []byte("tick")
		for s.Context().Err() == nil {
			if err := s.SendMsg(&tick); err != nil {
				return err
			}
			time.Sleep(10 * time.Millisecond)
		}
		return s.Context().Err()
	}
	return status.Error(codes.Unimplemented, "unknown method")
}

func serve(port string, pair []string) {
	options := []grpc.ServerOption{grpc.ForceServerCodec(raw{}), grpc.UnknownServiceHandler(handle)}
	if len(pair) == 2 {
		tls, err := credentials.NewServerTLSFromFile(pair[1], pair[0])
		if err != nil {
			panic(err)
		}
		options = append(options, grpc.Creds(tls))
	}
	server := grpc.NewServer(options...)
	l, err := net.Listen("tcp", "127.0.0.1:"+port)
	if err != nil {
		panic(err)
	}
	fmt.Println("listening")
	panic(server.Serve(l))
}

// Sends the messages, then reads to the end; how many came, and the status.
func call(ctx context.Context, c *grpc.ClientConn, method string, messages ...[]byte) (int, string) {
	desc := &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}
	s, err := c.NewStream(ctx, desc, "/"+service+"/"+method, grpc.ForceCodec(raw{}))
	if err != nil {
		return 0, status.Code(err).String()
	}
	for i := range messages {
		s.SendMsg(&messages[i])
	}
	s.CloseSend()
	for n := 0; ; n++ {
		var m []byte
		if err = s.RecvMsg(&m); err == io.EOF {
			return n, "OK"
		} else if err != nil {
			return n, status.Code(err).String()
		}
	}
}

func main() {
	if os.Args[1] == "server" {
		serve(os.Args[2], os.Args[3:])
	}
	how := insecure.NewCredentials()
	if len(os.Args) > 6 {
		tls, err := credentials.NewClientTLSFromFile(os.Args[6], "localhost")
		if err != nil {
			panic(err)
		}
		how = tls
	}
	c, err := grpc.NewClient(os.Args[2], grpc.WithTransportCredentials(how))
	if err != nil {
		panic(err)
	}
	log, _ := os.OpenFile(os.Args[3], os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	names := map[string]string{"OK": "OK", "NotFound": "NOT_FOUND", "Internal": "INTERNAL", "Unimplemented": "UNIMPLEMENTED",
		"DeadlineExceeded": "DEADLINE_EXCEEDED", "Canceled": "CANCELLED"}
	var lock sync.Mutex
	note := func(method, code string, sent, received any) {
		lock.Lock()
		fmt.Fprintf(log, "%s/%s\t%s\t%v\t%v\n", service, method, names[code], sent, received)
		lock.Unlock()
	}
	rounds, _ := strconv.Atoi(os.Args[4])
	streams, _ := strconv.Atoi(os.Args[5])
	background := context.Background()
	for r := 0; r < rounds; r++ {
		var wait sync.WaitGroup
		for k := 0; k < streams; k++ {
			wait.Add(1)
			go func() {
				defer wait.Done()
				n, code := call(background, c, "Unary", make([]byte, 100))
				note("Unary", code, 1, n)
				for _, want := range []string{"NOT_FOUND", "INTERNAL"} {
					_, code = call(background, c, "Fails", []byte(want))
					note("Fails", code, 1, 0)
				}
				_, code = call(background, c, "None", []byte{})
				note("None", code, "-", 0)
				n, code = call(background, c, "Many", []byte("20"))
				note("Many", code, 1, n)
				n, code = call(background, c, "Collect", []byte("a"), make([]byte, 70000), []byte{})
				note("Collect", code, 3, n)
				n, code = call(background, c, "Chat", []byte("1"), []byte("2"), []byte("3"))
				note("Chat", code, 3, n)
				short, cancel := context.WithTimeout(background, 100*time.Millisecond)
				_, code = call(short, c, "Slow", []byte("0.5"))
				cancel()
				note("Slow", code, "-", "-")
				some, stop := context.WithCancel(background)
				time.AfterFunc(50*time.Millisecond, stop)
				_, code = call(some, c, "Forever", []byte{})
				note("Forever", code, "-", "-")
			}()
		}
		wait.Wait()
	}
	c.Close()
}

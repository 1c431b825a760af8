// SPDX-License-Identifier: Apache-2.0
// main PORT BACKEND-PORT: a gRPC server that answers /r/ID by calling the backend's /d/ID/0 and /d/ID/1 in turn.
// main PORT: the backend. main load PORT CONNECTIONS SECONDS: calls /r/ID, that many at a time, over one connection.
package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/emptypb"
)

func dial(port string) *grpc.ClientConn {
	c, err := grpc.NewClient("127.0.0.1:"+port, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		panic(err)
	}
	return c
}

func load(port, connections, seconds string) {
	n, _ := strconv.Atoi(connections)
	s, _ := strconv.Atoi(seconds)
	c, end := dial(port), time.Now().Add(time.Duration(s)*time.Second)
	var all sync.WaitGroup
	for i := 0; i < n; i++ {
		all.Add(1)
		go func(i int) {
			defer all.Done()
			for k := 0; time.Now().Before(end); k++ {
				if err := c.Invoke(context.Background(), fmt.Sprintf("/r/%dx%d", i, k), &emptypb.Empty{}, &emptypb.Empty{}); err != nil {
					panic(err)
				}
			}
		}(i)
	}
	all.Wait()
}

func main() {
	if os.Args[1] == "load" {
		load(os.Args[2], os.Args[3], os.Args[4])
		return
	}
	var backend *grpc.ClientConn
	if len(os.Args) > 2 {
		backend = dial(os.Args[2])
	}
	l, err := net.Listen("tcp", "127.0.0.1:"+os.Args[1])
	if err != nil {
		panic(err)
	}
	fmt.Println("ready")
	panic(grpc.NewServer(grpc.UnknownServiceHandler(func(_ any, s grpc.ServerStream) error {
		if err := s.RecvMsg(&emptypb.Empty{}); err != nil {
			return err
		}
		method, _ := grpc.MethodFromServerStream(s)
		for n := 0; backend != nil && n < 2; n++ {
			path := fmt.Sprintf("/d/%s.%d", strings.TrimPrefix(method, "/r/"), n)
			if err := backend.Invoke(s.Context(), path, &emptypb.Empty{}, &emptypb.Empty{}); err != nil {
				return err
			}
		}
		return s.SendMsg(&emptypb.Empty{})
	})).Serve(l))
}

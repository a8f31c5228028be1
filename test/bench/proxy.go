package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"sync/atomic"
)

// proxy hands connections on to an address and counts the bytes. TLS goes through it untouched:
// what it counts is what a network would carry, headers of TCP and IP aside.
type proxy struct {
	listener net.Listener
	to       string
	sent     atomic.Int64
	received atomic.Int64
}

// startProxy listens on the loopback interface until ctx ends.
func startProxy(ctx context.Context, to string) (*proxy, error) {
	var l net.ListenConfig
	listener, err := l.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listening for the counting proxy: %w", err)
	}
	p := &proxy{listener: listener, to: to}
	context.AfterFunc(ctx, func() { _ = listener.Close() })
	go func() {
		for {
			in, err := listener.Accept()
			if err != nil {
				return
			}
			go p.serve(ctx, in)
		}
	}()
	return p, nil
}

func (p *proxy) serve(ctx context.Context, in net.Conn) {
	defer func() { _ = in.Close() }()
	var d net.Dialer
	out, err := d.DialContext(ctx, "tcp", p.to)
	if err != nil {
		return
	}
	defer func() { _ = out.Close() }()
	stop := context.AfterFunc(ctx, func() { _, _ = in.Close(), out.Close() })
	defer stop()
	done := make(chan struct{}, 2)
	pump := func(to io.Writer, from io.Reader, count *atomic.Int64) {
		_, _ = io.Copy(counting{to, count}, from)
		done <- struct{}{}
	}
	go pump(out, in, &p.sent)
	go pump(in, out, &p.received)
	// Either end may hang up; then the other has nobody to talk to.
	<-done
}

func (p *proxy) address() string { return p.listener.Addr().String() }

// counting adds what is written to a count as it goes: a watch is one copy that never ends. It
// counts first, so that nobody has an answer that was not counted.
type counting struct {
	io.Writer
	count *atomic.Int64
}

func (c counting) Write(b []byte) (int, error) {
	c.count.Add(int64(len(b)))
	return c.Writer.Write(b)
}

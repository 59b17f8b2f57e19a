package syncwire

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/carrelfs/carrel/casstore/chunk"
	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/syncwire/wiretest"
)

// benchChunks is how many chunks of the largest size are moved at a time.
const benchChunks = 32

// BenchmarkFetch moves chunks from a server to a client, which checks them, and the same bytes by the same transport
// without this package, in turns, so that what else the machine does is the same for both. Of each turn it takes the ratio of
// the rates, and gives their medians: a transport to itself (tcp/plain), and the unix socket to QUIC.
func BenchmarkFetch(b *testing.B) {
	chunks := make([]vfs.Chunk, benchChunks)
	for i := range chunks {
		chunks[i] = plainChunk(chunk.MaxSize)
	}
	moves := map[string]func(testing.TB){}
	for name, transport := range transports {
		l, d := transport(b)
		moves[name] = fetcher(b, l, d, chunks)
		moves["plain "+name] = plain(b, plainTransports[name])
	}
	took := map[string][]float64{}
	for b.Loop() {
		for name, move := range moves {
			began := time.Now()
			move(b)
			took[name] = append(took[name], time.Since(began).Seconds())
		}
	}
	rate := func(name string) {
		b.ReportMetric(benchChunks*chunk.MaxSize/1e6/median(took[name]), strings.ReplaceAll(name, " ", "-")+"-MB/s")
	}
	ratio := func(name, to string) float64 {
		var all []float64
		for i := range took[name] {
			all = append(all, took[to][i]/took[name][i])
		}
		return median(all)
	}
	for name := range transports {
		rate(name)
		rate("plain " + name)
		b.ReportMetric(ratio(name, "plain "+name), name+"/plain")
	}
	b.ReportMetric(ratio("unix", "quic"), "unix/quic")
	b.ReportMetric(0, "ns/op") // of all together, which says nothing
}

func median(all []float64) float64 {
	slices.Sort(all)
	return all[len(all)/2]
}

// fetcher returns what fetches chunks from a server.
func fetcher(b testing.TB, l Listener, d Dialer, chunks []vfs.Chunk) func(testing.TB) {
	m := wiretest.NewMemory(vfs.Epoch{1})
	serving(b, ServerConfig{}, m, l)
	if err := m.WriteChunks(context.Background(), chunks); err != nil {
		b.Fatal(err)
	}
	c, ids := client(b, d, 0, "secret"), idsOf(chunks)
	return func(b testing.TB) {
		if err := c.ReadChunks(context.Background(), ids, func(vfs.Chunk) error { return nil }); err != nil {
			b.Fatal(err)
		}
	}
}

// plain returns what moves as many bytes with nothing around them.
func plain(b testing.TB, transport func(testing.TB) (client, server io.ReadWriter)) func(testing.TB) {
	client, server := transport(b)
	go func() { // until the transport is closed
		buf, one := make([]byte, chunk.MaxSize), make([]byte, 1)
		for {
			if _, err := io.ReadFull(server, one); err != nil {
				return
			}
			for range benchChunks {
				if _, err := server.Write(buf); err != nil {
					return
				}
			}
		}
	}()
	buf := make([]byte, chunk.MaxSize)
	return func(b testing.TB) {
		if _, err := client.Write([]byte{1}); err != nil {
			b.Fatal(err)
		}
		for range benchChunks {
			if _, err := io.ReadFull(client, buf); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// plainTransports are what transports are made of, as it comes.
var plainTransports = map[string]func(testing.TB) (client, server io.ReadWriter){
	"unix": func(b testing.TB) (io.ReadWriter, io.ReadWriter) {
		l, err := net.Listen("unix", filepath.Join(b.TempDir(), "plain.sock"))
		return connect(b, l, err, func(addr string) (net.Conn, error) { return net.Dial("unix", addr) })
	},
	"tcp": func(b testing.TB) (io.ReadWriter, io.ReadWriter) {
		id := testIdentity(b)
		l, err := tls.Listen("tcp", "127.0.0.1:0", id.serverTLS())
		return connect(b, l, err, func(addr string) (net.Conn, error) {
			return tls.Dial("tcp", addr, clientTLS(id.Fingerprint()))
		})
	},
	"quic": func(b testing.TB) (io.ReadWriter, io.ReadWriter) {
		id, ctx := testIdentity(b), context.Background()
		l, err := quic.ListenAddr("127.0.0.1:0", id.serverTLS(), nil)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { l.Close() })
		conn, err := quic.DialAddr(ctx, l.Addr().String(), clientTLS(id.Fingerprint()), nil)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { conn.CloseWithError(0, "") })
		there, err := l.Accept(ctx)
		if err != nil {
			b.Fatal(err)
		}
		server, err := there.OpenStream()
		if err == nil {
			_, err = server.Write([]byte{1}) // a stream is not there before something comes
		}
		if err != nil {
			b.Fatal(err)
		}
		client, err := conn.AcceptStream(ctx)
		if err == nil {
			_, err = io.ReadFull(client, make([]byte, 1))
		}
		if err != nil {
			b.Fatal(err)
		}
		return client, server
	},
}

// connect returns both ends of a connection to a listener.
func connect(
	b testing.TB, l net.Listener, err error, dial func(addr string) (net.Conn, error),
) (client, server io.ReadWriter) {
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { l.Close() })
	accepted := make(chan net.Conn, 1)
	go func() {
		if conn, err := l.Accept(); err == nil {
			if c, ok := conn.(*tls.Conn); ok {
				c.Handshake()
			}
			accepted <- conn
		}
	}()
	c, err := dial(l.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	s := <-accepted
	b.Cleanup(func() { c.Close(); s.Close() })
	return c, s
}

// BenchmarkPush pushes one changed record, and waits for the answer.
func BenchmarkPush(b *testing.B) {
	for name, transport := range transports {
		b.Run(name, func(b *testing.B) {
			l, d := transport(b)
			serving(b, ServerConfig{}, wiretest.NewMemory(vfs.Epoch{1}), l)
			c := client(b, d, 0, "secret")
			w := newWriter(b, c, 0)
			key := vfs.Key{Kind: vfs.KeyInode, Ino: vfs.RootIno}
			old := w.all()[key]
			rec, err := vfs.DecodeInode(old.Value)
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				rec.Mtime++
				now := vfs.Record{Key: key, Value: rec.Append(nil)}
				p := vfs.Push{Records: []vfs.PushRecord{{Record: now, Base: old.Base()}}}
				p.ID[0], p.ID[1], p.ID[2] = byte(rec.Mtime), byte(rec.Mtime>>8), byte(rec.Mtime>>16)
				w.push(p)
				old = now
			}
			b.StopTimer()
			c.Close()
		})
	}
}

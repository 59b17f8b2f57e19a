package syncwire

import (
	"net"
	"testing"
	"time"

	"github.com/quic-go/quic-go"
)

// What is sent into silence is noticed, and what needs no answer is not.
func TestSilenceWatch(t *testing.T) {
	const rtt = 100 * time.Millisecond
	for name, tt := range map[string]struct {
		received, sent []uint64 // at each look
		rtt            time.Duration
		want           int // the look that finds silence, or -1
	}{
		"nothing at all":            {[]uint64{5, 5, 5, 5, 5, 5, 5, 5}, []uint64{9, 9, 9, 9, 9, 9, 9, 9}, rtt, -1},
		"an acknowledgement":        {[]uint64{5, 6, 6, 6, 6, 6, 6, 6}, []uint64{9, 9, 10, 10, 10, 10, 10, 10}, rtt, -1},
		"a question":                {[]uint64{5, 5, 5, 5, 5, 5, 5, 5}, []uint64{9, 9, 10, 10, 10, 10, 10, 10}, rtt, 5},
		"a question and its answer": {[]uint64{5, 5, 5, 6, 6, 6, 6, 6}, []uint64{9, 9, 10, 10, 10, 10, 10, 10}, rtt, -1},
		"a question from far away":  {[]uint64{5, 5, 5, 5, 5, 5, 5, 5}, []uint64{9, 9, 10, 10, 10, 10, 10, 10}, 600 * time.Millisecond, 7},
		"much, and then a cut":      {[]uint64{5, 50, 90, 90, 90, 90, 90, 90}, []uint64{9, 99, 150, 151, 152, 153, 154, 154}, rtt, 7},
	} {
		var s silenceWatch
		got, now := -1, time.Unix(0, 0)
		for i := range tt.received {
			stats := quic.ConnectionStats{PacketsReceived: tt.received[i], PacketsSent: tt.sent[i], SmoothedRTT: tt.rtt}
			if s.look(now, &stats) && got < 0 {
				got = i
			}
			now = now.Add(lookEvery)
		}
		if got != tt.want {
			t.Errorf("%s: silence was found at look %d, want %d", name, got, tt.want)
		}
	}
}

// The address that a server would see is found, with sockets of each family.
func TestSource(t *testing.T) {
	for _, network := range []string{"udp", "udp4"} {
		w := &way{socket: func() (*net.UDPConn, error) { return net.ListenUDP(network, nil) }}
		if got := w.source(&net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 9}); !got.Unmap().IsLoopback() {
			t.Errorf("%s: to the loopback interface from %v", network, got)
		}
	}
}

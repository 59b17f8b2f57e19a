package badlink

import (
	"container/heap"
	"math/rand/v2"
	"os"
	"sync"
	"time"
)

// Config says how bad a link is. Each direction is as bad by itself.
type Config struct {
	Seed    uint64
	Delay   time.Duration // one way
	Rate    int           // bytes of IP packets a second
	Queue   time.Duration // what would wait longer for its turn is dropped
	Loss    float64       // of packets
	Double  float64
	Reorder float64 // of packets, which come late by Late
	Late    time.Duration
}

// SlowRate is that of Slow: 3 Mbit/s, in bytes a second.
const SlowRate = 3_000_000 / 8

// Slow is a link with 50 ms of round trip, 3 Mbit/s, one packet in a hundred lost, one doubled and two late.
func Slow(seed uint64) Config {
	return Config{
		Seed: seed, Delay: 25 * time.Millisecond, Rate: SlowRate, Queue: 200 * time.Millisecond, Loss: 0.01, Double: 0.01,
		Reorder: 0.02, Late: 12500 * time.Microsecond,
	}
}

// Count is what became of the packets of a direction.
type Count struct {
	Packets, Bytes int           // that were sent to the link
	Crossed        int           // bytes that took the link's time, twice where a packet was doubled
	Busy           time.Duration // that time

	// Overdue is by how much they came later, in sum, than they should: this machine's doing, and not the link's.
	Overdue time.Duration

	// Packets that were lost by chance, for want of room in the queue, or in a cut; that came twice; that came late.
	Lost, Dropped, Cut, Doubled, Late int
}

// Since is what became of them after an earlier count.
func (c Count) Since(old Count) Count {
	return Count{
		Packets: c.Packets - old.Packets, Bytes: c.Bytes - old.Bytes, Crossed: c.Crossed - old.Crossed, Busy: c.Busy - old.Busy,
		Overdue: c.Overdue - old.Overdue,
		Lost:    c.Lost - old.Lost, Dropped: c.Dropped - old.Dropped, Cut: c.Cut - old.Cut, Doubled: c.Doubled - old.Doubled,
		Late: c.Late - old.Late,
	}
}

// relay carries the packets of one direction.
type relay struct {
	config   Config
	from, to *os.File
	changed  *sync.Cond // mu; something is in the queue or due, or the relay ends

	mu    sync.Mutex
	rand  *rand.Rand
	cut   bool
	free  time.Time // when the link has sent what is queued
	queue packets
	seq   int
	count Count
	ended bool
	timer *time.Timer
}

func newRelay(c Config, direction uint64, from, to *os.File) *relay {
	r := &relay{config: c, from: from, to: to, rand: rand.New(rand.NewPCG(c.Seed, direction))}
	r.changed = sync.NewCond(&r.mu)
	r.timer = time.AfterFunc(time.Hour, r.wake)
	return r
}

// wake has deliver look again. The lock keeps it from coming between a look and the wait after it.
func (r *relay) wake() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.changed.Broadcast()
}

// maxPacket is the longest IP packet.
const maxPacket = 64 << 10

// receive takes packets until the device is gone.
func (r *relay) receive() {
	buf := make([]byte, maxPacket)
	for {
		n, err := r.from.Read(buf)
		if err != nil {
			r.end()
			return
		}
		if n > 0 && buf[0]>>4 == 4 { // what the kernel itself has to say over IPv6 must not move the seed on
			r.take(buf[:n], time.Now())
		}
	}
}

// fate is what the seed has for a packet.
type fate struct{ lost, doubled, late bool }

// nextLocked draws as many numbers for each packet.
func (r *relay) nextLocked() fate {
	lost, doubled, late := r.rand.Float64(), r.rand.Float64(), r.rand.Float64()
	return fate{lost < r.config.Loss, doubled < r.config.Double, late < r.config.Reorder}
}

// take decides about a packet.
func (r *relay) take(packet []byte, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.count.Packets++
	r.count.Bytes += len(packet)
	f := r.nextLocked()
	switch {
	case r.cut:
		r.count.Cut++
		return
	case f.lost:
		r.count.Lost++
		return
	}
	r.sendLocked(packet, now, f.late)
	if f.doubled {
		r.count.Doubled++
		r.sendLocked(packet, now, false)
	}
}

// sendLocked puts a packet into the queue of the link.
func (r *relay) sendLocked(packet []byte, now time.Time, late bool) {
	if r.free.Before(now) {
		r.free = now
	}
	if r.free.Sub(now) > r.config.Queue {
		r.count.Dropped++
		return
	}
	r.count.Crossed += len(packet)
	takes := time.Duration(len(packet)) * time.Second / time.Duration(r.config.Rate)
	r.count.Busy += takes
	r.free = r.free.Add(takes)
	at := r.free.Add(r.config.Delay)
	if late {
		r.count.Late++
		at = at.Add(r.config.Late)
	}
	r.seq++
	heap.Push(&r.queue, queued{at: at, seq: r.seq, bytes: append([]byte(nil), packet...)})
	r.changed.Broadcast()
}

// deliver writes packets when they are due, until the relay ends.
func (r *relay) deliver() {
	for {
		p, ok := r.due()
		if !ok {
			return
		}
		r.to.Write(p) // an error is a packet lost
	}
}

func (r *relay) due() (packet []byte, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for !r.ended {
		if len(r.queue) > 0 {
			wait := time.Until(r.queue[0].at)
			if wait <= 0 {
				r.count.Overdue -= wait
				return heap.Pop(&r.queue).(queued).bytes, true
			}
			r.timer.Reset(wait)
		}
		r.changed.Wait()
	}
	return nil, false
}

func (r *relay) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = true
	r.timer.Stop()
	r.changed.Broadcast()
}

// setCut has nothing more enter the link. What is in it arrives.
func (r *relay) setCut(cut bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cut = cut
}

func (r *relay) counted() Count {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.count
}

// queued is a packet on its way.
type queued struct {
	at    time.Time
	seq   int // of two that are due together, the first sent is first
	bytes []byte
}

// packets is a heap of packets by when they are due.
type packets []queued

func (p packets) Len() int { return len(p) }
func (p packets) Less(i, j int) bool {
	if p[i].at.Equal(p[j].at) {
		return p[i].seq < p[j].seq
	}
	return p[i].at.Before(p[j].at)
}
func (p packets) Swap(i, j int) { p[i], p[j] = p[j], p[i] }
func (p *packets) Push(x any)   { *p = append(*p, x.(queued)) }
func (p *packets) Pop() any {
	old := *p
	last := old[len(old)-1]
	*p = old[:len(old)-1]
	return last
}

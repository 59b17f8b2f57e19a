package syncwire

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"
)

// quicPatience is how long QUIC is waited for before TCP is tried: a handshake whose first packet was lost, twice.
const quicPatience = 3 * time.Second

// quicAgain is after how long on TCP a new connection tries QUIC first again.
const quicAgain = 10 * time.Minute

// DialAuto returns a dialer that takes QUIC, and TCP at the same address where UDP does not get through. Which of them it
// is, it says to the log when that changes.
func DialAuto(addr string, pin Fingerprint, log *slog.Logger, options ...DialOption) Dialer {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &autoDialer{
		addr: addr, log: log, patience: quicPatience,
		quic: DialQUIC(addr, pin, options...), tcp: DialTLS(addr, pin, options...),
	}
}

type autoDialer struct {
	addr      string
	log       *slog.Logger
	quic, tcp Dialer
	patience  time.Duration

	mu       sync.Mutex
	tcpSince time.Time // when TCP was taken; zero while QUIC works
	said     string    // the transport that the log knows
}

// Dial implements Dialer.
func (d *autoDialer) Dial(ctx context.Context) (Link, error) {
	var quicErr error
	if d.trusts() {
		quicCtx, cancel := context.WithTimeout(ctx, d.patience)
		defer cancel()
		link, err := d.quic.Dial(quicCtx)
		if err == nil {
			d.took("quic", nil)
			return link, nil
		}
		if quicErr = err; errors.Is(err, ErrFingerprint) || ctx.Err() != nil {
			return nil, err
		}
	}
	link, err := d.tcp.Dial(ctx)
	if err != nil {
		d.forget() // neither works: perhaps both will again
		return nil, errors.Join(quicErr, err)
	}
	d.took("tcp", quicErr)
	return link, nil
}

// trusts reports whether QUIC is to be tried.
func (d *autoDialer) trusts() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.tcpSince.IsZero() || time.Since(d.tcpSince) > quicAgain
}

func (d *autoDialer) took(transport string, quicErr error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case transport == "quic":
		d.tcpSince = time.Time{}
	case quicErr != nil:
		d.tcpSince = time.Now()
	}
	if d.said != transport {
		d.said = transport
		d.log.Info("connected", "server", d.addr, "transport", transport, "because", quicErr)
	}
}

func (d *autoDialer) forget() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.tcpSince = time.Time{}
}

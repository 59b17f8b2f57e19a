package syncwire

import (
	"math"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// Versions of the protocol that this program speaks.
const (
	minVersion = 1
	maxVersion = 1
)

// magic begins a hello, so that something else on the port is known at once.
var magic = [6]byte{'c', 'a', 'r', 'r', 'e', 'l'}

// sessionKey ties the streams of a session together. The client makes it at random; who knows it is the session's peer.
type sessionKey [32]byte

// hello is the first frame of a session's control stream.
type hello struct {
	Min, Max  uint16
	Features  uint64
	Session   sessionKey
	Workspace string
	Mirror    [16]byte
	Token     []byte
	Agent     string
}

func (*hello) frame() frameType { return frameHello }

func (m *hello) fields(c *coder) {
	word := magic
	if c.fixed("magic", word[:]); word != magic {
		c.fail("magic", "%q", word)
	}
	number(c, "min", &m.Min, math.MaxUint16)
	number(c, "max", &m.Max, math.MaxUint16)
	number(c, "features", &m.Features, math.MaxUint64)
	c.fixed("session", m.Session[:])
	c.text("workspace", &m.Workspace, maxWorkspace)
	c.fixed("mirror", m.Mirror[:])
	c.block("token", &m.Token, maxToken)
	c.text("agent", &m.Agent, maxAgent)
}

// version returns the highest version that both sides speak, zero when there is none.
func (m *hello) version() uint16 {
	if v := min(m.Max, maxVersion); v >= max(m.Min, minVersion) {
		return v
	}
	return 0
}

// welcome answers a hello.
type welcome struct {
	Version     uint16
	Features    uint64
	Peer        vfs.PeerID
	Rights      Rights
	Expires     uint64 // seconds since 1970, zero for never
	Position    vfs.Position
	PushRecords uint32
	PushBytes   uint32
	Requests    uint16
	Streams     uint16
	Agent       string
}

func (*welcome) frame() frameType { return frameWelcome }

func (m *welcome) fields(c *coder) {
	number(c, "version", &m.Version, math.MaxUint16)
	number(c, "features", &m.Features, math.MaxUint64)
	c.fixed("peer", m.Peer[:])
	number(c, "rights", &m.Rights, math.MaxUint16)
	number(c, "expires", &m.Expires, math.MaxUint64)
	positionFields(c, &m.Position)
	number(c, "push records", &m.PushRecords, math.MaxUint32)
	number(c, "push bytes", &m.PushBytes, math.MaxUint32)
	number(c, "requests", &m.Requests, math.MaxUint16)
	number(c, "streams", &m.Streams, math.MaxUint16)
	c.text("agent", &m.Agent, maxAgent)
}

// streamKind says what a stream is for. The values are part of the protocol.
type streamKind uint8

const (
	streamFeed    streamKind = 1
	streamPush    streamKind = 2
	streamBulk    streamKind = 3
	streamService streamKind = 4
)

// open is the first frame of every other stream of a session.
type open struct {
	Session sessionKey
	Kind    streamKind
	Service string
}

func (*open) frame() frameType { return frameOpen }

func (m *open) fields(c *coder) {
	c.fixed("session", m.Session[:])
	number(c, "kind", &m.Kind, math.MaxUint8)
	c.text("service", &m.Service, maxService)
}

// opened is the server's first frame on the stream of a service. What follows is the service's own.
type opened struct{}

func (*opened) frame() frameType { return frameOpened }
func (*opened) fields(*coder)    {}

// failure is the error with which a request, or with number zero the stream, ends.
type failure struct {
	numbered
	Code code
	Text string
}

func (*failure) frame() frameType { return frameError }

func (m *failure) fields(c *coder) {
	reqField(c, &m.Req)
	number(c, "code", &m.Code, math.MaxUint16)
	c.text("text", &m.Text, maxErrorText)
}

// err returns the error that the other side meant.
func (m *failure) err() error { return &Error{Code: uint16(m.Code), Text: m.Text} }

func reqField(c *coder, v *uint64) { number(c, "req", v, math.MaxUint64) }

// unsupported answers a frame of a type that its receiver does not know.
type unsupported struct {
	numbered
	Type frameType
}

func (*unsupported) frame() frameType { return frameUnsupported }

func (m *unsupported) fields(c *coder) {
	reqField(c, &m.Req)
	number(c, "type", &m.Type, math.MaxUint8)
}

// ping asks for a pong.
type ping struct{ numbered }

func (*ping) frame() frameType  { return framePing }
func (m *ping) fields(c *coder) { reqField(c, &m.Req) }

type pong struct{ numbered }

func (*pong) frame() frameType  { return framePong }
func (m *pong) fields(c *coder) { reqField(c, &m.Req) }

// drain says that the server is about to stop.
type drain struct {
	Seconds uint32 // how long the streams still work
}

func (*drain) frame() frameType { return frameDrain }

func (m *drain) fields(c *coder) { number(c, "seconds", &m.Seconds, math.MaxUint32) }

// ack says how far a mirror has applied its feed. It has no answer.
type ack struct{ Rev vfs.Rev }

func (*ack) frame() frameType { return frameAck }

func (m *ack) fields(c *coder) { revField(c, "rev", &m.Rev) }

// cancel says that the answer to a request is no longer wanted.
type cancel struct{ numbered }

func (*cancel) frame() frameType  { return frameCancel }
func (m *cancel) fields(c *coder) { reqField(c, &m.Req) }

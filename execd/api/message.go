package api

import (
	"encoding/json"
	"fmt"
	"math"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/carrelfs/carrel/casstore/vfs"
	"github.com/carrelfs/carrel/execd"
	carrelv1 "github.com/carrelfs/carrel/execd/api/carrel/v1"
)

// specOf reads a spec from the wire.
func specOf(m *carrelv1.Spec) (execd.Spec, error) {
	s := execd.Spec{
		ID: m.GetId(), Workspace: m.GetWorkspace(), Backend: m.GetBackend(), Args: m.GetArgs(), Source: m.GetSource(),
		Dir: m.GetDir(), Env: m.GetEnv(), Stdin: m.GetStdin(), Open: m.GetOpen(), Timeout: m.GetTimeout().AsDuration(),
		Net: m.GetNet(), Root: m.GetRoot(), Runtime: m.GetRuntime(),
		Limits: execd.Limits{
			Memory: m.GetLimits().GetMemory(), CPU: m.GetLimits().GetCpu(), Pids: m.GetLimits().GetPids(),
		},
	}
	if m.GetInputJson() != "" {
		s.Input = json.RawMessage(m.GetInputJson())
	}
	if m.Timeout != nil && !m.Timeout.IsValid() {
		return s, fmt.Errorf("time limit: %w", vfs.ErrInvalid)
	}
	if m.Tty != nil {
		size, err := sizeOf(m.Tty)
		if err != nil {
			return s, err
		}
		s.TTY = &size
	}
	return s, nil
}

func sizeOf(m *carrelv1.Size) (execd.Size, error) {
	if m.GetRows() > math.MaxUint16 || m.GetCols() > math.MaxUint16 {
		return execd.Size{}, fmt.Errorf("a terminal of %d rows and %d columns: %w", m.GetRows(), m.GetCols(), vfs.ErrInvalid)
	}
	return execd.Size{Rows: uint16(m.GetRows()), Cols: uint16(m.GetCols())}, nil
}

// Spec is the inverse of specOf, for clients.
func Spec(s execd.Spec) *carrelv1.Spec {
	m := &carrelv1.Spec{
		Id: s.ID, Workspace: s.Workspace, Backend: s.Backend, Args: s.Args, Source: s.Source, Dir: s.Dir, Env: s.Env,
		Stdin: s.Stdin, Open: s.Open, InputJson: string(s.Input), Net: s.Net, Root: s.Root,
		Runtime: s.Runtime,
	}
	if s.Timeout != 0 {
		m.Timeout = durationpb.New(s.Timeout)
	}
	if s.TTY != nil {
		m.Tty = &carrelv1.Size{Rows: uint32(s.TTY.Rows), Cols: uint32(s.TTY.Cols)}
	}
	if s.Limits != (execd.Limits{}) {
		m.Limits = &carrelv1.Limits{Memory: s.Limits.Memory, Cpu: s.Limits.CPU, Pids: s.Limits.Pids}
	}
	return m
}

// eventMessage puts an event on the wire.
func eventMessage(e execd.Event) (*carrelv1.Event, error) {
	m := &carrelv1.Event{Seq: e.Seq}
	if !e.Time.IsZero() {
		m.Time = timestamppb.New(e.Time)
	}
	switch e.Stream {
	case execd.Stdout:
		m.Event = &carrelv1.Event_Stdout{Stdout: e.Data}
	case execd.Stderr:
		m.Event = &carrelv1.Event_Stderr{Stderr: e.Data}
	case execd.Gap:
		m.Event = &carrelv1.Event_Gap{Gap: &carrelv1.Gap{FirstSeq: e.First, LostBytes: e.Lost}}
	case execd.Exited:
		var r execd.Result
		if err := json.Unmarshal(e.Data, &r); err != nil {
			return nil, fmt.Errorf("the result of an exec: %w: %w", vfs.ErrCorrupt, err)
		}
		m.Event = &carrelv1.Event_Exit{Exit: resultMessage(&r)}
	default:
		return nil, fmt.Errorf("an event of kind %d: %w", e.Stream, vfs.ErrCorrupt)
	}
	return m, nil
}

func resultMessage(r *execd.Result) *carrelv1.Result {
	if r == nil {
		return nil
	}
	m := &carrelv1.Result{
		Status: string(r.Status), Code: int32(r.Code), Signal: r.Signal, Reason: r.Reason, ValueJson: string(r.Value),
		RevisionBefore: uint64(r.Before), RevisionAfter: uint64(r.After), Pending: r.Pending,
		Started: timestamppb.New(r.Started), Ended: timestamppb.New(r.Ended), OutputBytes: r.Output, LostBytes: r.Lost,
		Backend: r.Backend, Why: r.Why,
	}
	if c := r.Changes; c != nil {
		m.Changes = &carrelv1.Changes{Added: int64(c.Added), Modified: int64(c.Modified), Deleted: int64(c.Deleted)}
	}
	return m
}

// Result is the inverse of resultMessage, for clients.
func Result(m *carrelv1.Result) execd.Result {
	r := execd.Result{
		Status: execd.Status(m.GetStatus()), Code: int(m.GetCode()), Signal: m.GetSignal(), Reason: m.GetReason(),
		Before: vfs.Rev(m.GetRevisionBefore()), After: vfs.Rev(m.GetRevisionAfter()), Pending: m.GetPending(),
		Started: timeOf(m.GetStarted()), Ended: timeOf(m.GetEnded()), Output: m.GetOutputBytes(), Lost: m.GetLostBytes(),
		Backend: m.GetBackend(), Why: m.GetWhy(),
	}
	if m.GetValueJson() != "" {
		r.Value = json.RawMessage(m.GetValueJson())
	}
	if c := m.GetChanges(); c != nil {
		r.Changes = &execd.Changes{Added: int(c.Added), Modified: int(c.Modified), Deleted: int(c.Deleted)}
	}
	return r
}

func timeOf(t *timestamppb.Timestamp) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.AsTime()
}

func execMessage(in execd.Info) *carrelv1.Exec {
	return &carrelv1.Exec{
		Spec: Spec(in.Spec), State: string(in.State), Created: timestamppb.New(in.Created), LastSeq: in.Last,
		OutputBytes: in.Output, Result: resultMessage(in.Result),
	}
}

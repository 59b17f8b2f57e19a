package syncwire

import "context"

// Trace is told when an operation begins, and by the function that it returns when the operation has ended, and how. It is
// where a tracer is put in: what it returns as a context is the one that the operation goes on with. With OpenTelemetry,
//
//	func(ctx context.Context, op string) (context.Context, func(error)) {
//		ctx, span := tracer.Start(ctx, "carrel "+op)
//		return ctx, func(err error) {
//			if err != nil {
//				span.RecordError(err)
//				span.SetStatus(codes.Error, "")
//			}
//			span.End()
//		}
//	}
//
// That is a function and not that library's interface, so that who does not trace need not have it. Operations have the names
// of the frames that begin them (get, push, fetch, ...), on either side; a client's
// Read is an "attach", and a server has "update" besides, what a feed sends at a time. They are called from many goroutines. Nothing of a trace travels: a span of the server's is no child of
// the client's.
type Trace func(ctx context.Context, op string) (context.Context, func(err error))

// begin is a call of t, which may be nil.
func (t Trace) begin(ctx context.Context, op string) (context.Context, func(error)) {
	if t == nil {
		return ctx, func(error) {}
	}
	return t(ctx, op)
}

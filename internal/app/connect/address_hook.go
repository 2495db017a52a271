package connect

import (
	"context"
	"errors"
	"net"

	"github.com/redis/go-redis/v9"

	"flashsale.dev/seckill/internal/cause"
)

// addressHook adds an address to errors of Redis that have none. It is the address of a server, the
// name of a master with its sentinels' addresses, or the addresses of a cluster. go-redis removes
// the address if the first commands of a new connection fail: a server that hangs would be a mere
// "i/o timeout".
type addressHook string

// addressedError is an error with the address of its server.
type addressedError struct {
	address addressHook
	error
}

// Error returns the address and the error.
func (e *addressedError) Error() string { return string(e.address) + ": " + e.error.Error() }

// Unwrap returns the error.
func (e *addressedError) Unwrap() error { return e.error }

// addTo adds the address to an error that has none and is no reply of the server. A server without
// a free connection replies to the first command of a new one and closes it. go-redis takes that
// reply for one of a server without HELLO, and the next command then fails as "broken pipe". addTo
// therefore returns an error that is no reply.
func (h addressHook) addTo(err error) error {
	if redis.HasErrorPrefix(err, "max number of clients") {
		return &addressedError{h, cause.With(errors.New(err.Error()), cause.Crowded)}
	}
	_, reply := errors.AsType[redis.Error](err)
	_, address := errors.AsType[*net.OpError](err)
	_, known := errors.AsType[*addressedError](err)
	if err == nil || reply || address || known {
		return err
	}
	return &addressedError{h, err}
}

// ProcessHook adds the address to errors of commands.
func (h addressHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error { return h.addTo(next(ctx, cmd)) }
}

// ProcessPipelineHook adds the address to errors of pipelines.
func (h addressHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := next(ctx, cmds)
		if err != nil {
			for _, cmd := range cmds {
				cmd.SetErr(h.addTo(cmd.Err()))
			}
		}
		return h.addTo(err)
	}
}

// DialHook implements redis.Hook; it changes nothing.
func (addressHook) DialHook(next redis.DialHook) redis.DialHook { return next }

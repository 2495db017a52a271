package connect

import (
	"context"
	"errors"
	"net"

	"github.com/redis/go-redis/v9"
)

// named is the address of a Redis, of a master's sentinels with its name, or of the nodes of a
// cluster. It adds itself to errors that have no address: go-redis removes that of a new connection
// whose first commands fail, so that a server that hangs is a mere "i/o timeout".
type named string

// namedError is an error with the address of its server.
type namedError struct {
	server named
	error
}

// Error returns the address and the error.
func (e *namedError) Error() string { return string(e.server) + ": " + e.error.Error() }

// Unwrap returns the error.
func (e *namedError) Unwrap() error { return e.error }

// name adds the address to an error that is no reply of the server.
func (n named) name(err error) error {
	_, reply := errors.AsType[redis.Error](err)
	_, address := errors.AsType[*net.OpError](err)
	_, known := errors.AsType[*namedError](err)
	if err == nil || reply || address || known {
		return err
	}
	return &namedError{n, err}
}

// ProcessHook names the server in errors of commands.
func (n named) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error { return n.name(next(ctx, cmd)) }
}

// ProcessPipelineHook names the server in errors of pipelines.
func (n named) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := next(ctx, cmds)
		if err != nil {
			for _, cmd := range cmds {
				cmd.SetErr(n.name(cmd.Err()))
			}
		}
		return n.name(err)
	}
}

// DialHook implements redis.Hook; it changes nothing.
func (named) DialHook(next redis.DialHook) redis.DialHook { return next }

package seckill

import "context"

// Role is what a token lets its holder be.
type Role string

// The roles of the contract.
const (
	Buyer    Role = "buyer"
	Merchant Role = "merchant"
	Operator Role = "operator"
)

// Actor is who asks, out of a verified token.
type Actor struct {
	ID    int64 // > 0
	Role  Role
	Name  string // for the order; may be empty
	Phone string // likewise
}

// MayManage tells whether the actor may see and change a merchant's sales.
func (a Actor) MayManage(merchantID int64) bool {
	return a.Role == Operator || a.Role == Merchant && a.ID == merchantID
}

type actorKey struct{}

// WithActor says on whose behalf what follows is done, for the audit log.
func WithActor(ctx context.Context, by Actor) context.Context {
	return context.WithValue(ctx, actorKey{}, by)
}

// ActorOf tells on whose behalf something is done; the zero Actor is the system itself.
func ActorOf(ctx context.Context) Actor {
	by, _ := ctx.Value(actorKey{}).(Actor)
	return by
}

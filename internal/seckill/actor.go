package seckill

import "context"

// Role decides which calls an actor may make. A token grants it; an API key has its merchant's.
type Role string

// The roles of the contract.
const (
	Buyer    Role = "buyer"
	Merchant Role = "merchant"
	Operator Role = "operator"
)

// Actor is the authenticated caller, from a verified token or API key.
type Actor struct {
	ID    string // opaque: 1 to 64 characters of [!-~]
	Role  Role
	Name  string // for the order; may be empty
	Phone string // for the order; may be empty
	Email string // for the order; may be empty
	// APIKey is the key with which a merchant's program called; zero for a person.
	APIKey APIKey
}

// APIKey names a key in the audit log.
type APIKey struct {
	ID   string
	Name string
}

// MayManage reports whether the actor may see and change a merchant's sales.
func (a Actor) MayManage(merchantID string) bool {
	return a.Role == Operator || a.Role == Merchant && a.ID == merchantID
}

// ManagedMerchant returns the merchant whose sales the actor may manage; "" for an operator, who
// may manage those of all.
func (a Actor) ManagedMerchant() string {
	if a.Role == Operator {
		return ""
	}
	return a.ID
}

type actorKey struct{}

// WithActor returns a context that names the actor of a change, for the audit log.
func WithActor(ctx context.Context, by Actor) context.Context {
	return context.WithValue(ctx, actorKey{}, by)
}

// ActorOf returns the actor of a context. The zero Actor is the system itself.
func ActorOf(ctx context.Context) Actor {
	by, _ := ctx.Value(actorKey{}).(Actor)
	return by
}

package seckill

import (
	"errors"
)

// ErrFenced says that a newer rebuild of the same sale has begun, or that its gate was opened in the middle of this one, which
// must stop and has changed nothing in Redis.
var ErrFenced = errors.New("a newer rebuild of this sale has begun, or its gate was opened meanwhile")

// FirstToken stands for a fencing token where a draft's first epoch begins: it begins no other.
const FirstToken = 0

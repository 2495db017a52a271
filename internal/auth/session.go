package auth

import (
	"time"

	"flashsale.dev/seckill/internal/seckill"
)

// Session makes of a good token one of ours that says the same and is good as long, and no larger than a cookie may be:
// a shop's own tokens may hold claims that we do not read. The refusal is Verify's.
func (t *Tokens) Session(token string) (value string, by seckill.Actor, until time.Time, err error) {
	var c claims
	if err := t.parse(token, &c); err != nil {
		return "", by, until, refuse(err)
	}
	if by, err = c.actor(); err != nil {
		return "", by, until, refuse(err)
	}
	until = c.ExpiresAt.Time
	value, err = t.Sign(by, until.Sub(t.now()))
	return value, by, until, err
}

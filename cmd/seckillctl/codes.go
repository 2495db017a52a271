package main

import (
	"fmt"
	"strings"
	"time"

	"flashsale.dev/seckill/internal/config"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/seckill/accesscode"
)

// codesCmd signs access codes. It contacts no server and stores nothing, so nobody else can print
// the same codes again. A code ends only with its time, its sale or the secret.
type codesCmd struct {
	orderSecrets
	Data    string    `default:"data" help:"Data directory of a standalone, for its secret."`
	GoodsID int64     `arg:"" help:"The goods id."`
	Kind    string    `required:"" enum:"shared,single" help:"shared or single, as accessCode of the sale."`
	Count   int       `default:"1" help:"How many codes, at most 100,000."`
	Expires time.Time `help:"When the codes end, such as 2026-11-11T13:00:00Z; rounded up to a whole hour. Without it they do not end."`
}

// signedCodes is the printed result.
type signedCodes struct {
	GoodsID   int64      `json:"goodsId,string"`
	Kind      string     `json:"kind"`
	ExpiresAt *time.Time `json:"expiresAt"` // null: they do not end
	Codes     []string   `json:"codes"`
}

// Run prints one code a line, which is also CSV without a header; JSON has their end too.
func (c *codesCmd) Run(s *session) error {
	if !c.Expires.IsZero() && !c.Expires.After(time.Now()) {
		return usage(fmt.Errorf("--expires %s is over: nobody could use the codes",
			c.Expires.Format(time.RFC3339)))
	}
	if c.JWTSecret == "" && c.OrderSecret == "" {
		secret, err := standaloneSecret(c.Data,
			"SECKILL_ORDER_SECRET (--order-secret) or SECKILL_JWT_SECRET (--jwt-secret)")
		if err != nil {
			return err
		}
		c.JWTSecret = config.Secret(secret)
	}
	secrets, err := c.keys()
	if err != nil {
		return err
	}
	codes, end, err := accesscode.NewKeys(secrets...).Sign(
		c.GoodsID, seckill.AccessCode(c.Kind), c.Expires, c.Count)
	if err != nil {
		return err
	}
	result := signedCodes{GoodsID: c.GoodsID, Kind: c.Kind, Codes: codes}
	if !end.IsZero() {
		result.ExpiresAt = &end
	}
	return s.print(result, "%s", strings.Join(codes, "\n"))
}

package main

import (
	"strings"
	"time"

	"flashsale.dev/seckill/internal/apikey"
	"flashsale.dev/seckill/internal/seckill"
	"flashsale.dev/seckill/internal/sqlstore"
)

// apiKeyCmd makes, lists and revokes API keys of merchants' back ends.
type apiKeyCmd struct {
	Create createAPIKeyCmd `cmd:"" help:"Make a key for a merchant's back end, and print it once."`
	List   listAPIKeysCmd  `cmd:"" help:"Print keys without their secrets, newest first."`
	Revoke revokeAPIKeyCmd `cmd:"" help:"Revoke a key on every node within a second."`
}

// cliActor returns the actor of every command: an operator without an id, because nobody signs in
// to the command line. A key that it makes has an empty createdBy.
func cliActor() seckill.Actor { return seckill.Actor{Role: seckill.Operator} }

// withKeys opens the database and calls work with its API keys.
func (d database) withKeys(s *session, work func(*apikey.Service) error) error {
	return d.with(s, func(store *sqlstore.Store) error {
		return work(&apikey.Service{Store: store})
	})
}

// createAPIKeyCmd makes a key.
type createAPIKeyCmd struct {
	database
	Merchant string         `required:"" help:"The id of the merchant whom the key acts as."`
	Name     string         `required:"" help:"The key's name in the audit log, up to 80 characters."`
	Scopes   []apikey.Scope `required:"" help:"Its rights, separated by commas: sales:read, sales:write, orders:read, orders:write, webhooks:write."`
}

// Run prints only the key, so that a shell can use it; JSON has its id and scopes too.
func (c *createAPIKeyCmd) Run(s *session) error {
	return c.withKeys(s, func(keys *apikey.Service) error {
		k, text, err := keys.Create(s.ctx, cliActor(),
			apikey.NewKey{MerchantID: c.Merchant, Name: c.Name, Scopes: c.Scopes})
		if err != nil {
			return err
		}
		return s.print(createdAPIKey{text, k}, "%s", text)
	})
}

// createdAPIKey is a new key in JSON, the only output with its text.
type createdAPIKey struct {
	Text string `json:"key"`
	apikey.Key
}

// listAPIKeysCmd prints keys, newest first.
type listAPIKeysCmd struct {
	database
	Merchant string `help:"Only keys of this merchant."`
}

// Run prints one line per key: text, or a JSON object.
func (c *listAPIKeysCmd) Run(s *session) error {
	return c.withKeys(s, func(keys *apikey.Service) error {
		for before := ""; ; {
			page, err := keys.List(s.ctx, cliActor(), c.Merchant, before, 100)
			if err != nil || len(page) == 0 {
				return err
			}
			for _, k := range page {
				if err := printAPIKey(s, k); err != nil {
					return err
				}
			}
			before = page[len(page)-1].ID
		}
	})
}

func printAPIKey(s *session, k apikey.Key) error {
	var scopes []string
	for _, scope := range k.Scopes {
		scopes = append(scopes, string(scope))
	}
	state := "valid"
	if !k.RevokedAt.IsZero() {
		state = "revoked " + k.RevokedAt.Format(time.RFC3339)
	}
	used := "never used"
	if !k.LastUsedAt.IsZero() {
		used = "used " + k.LastUsedAt.Format(time.RFC3339)
	}
	return s.printLine(k, "%s  %s  merchant %s  %q  %s  %s, %s", k.ID,
		k.CreatedAt.Format(time.RFC3339), k.MerchantID, k.Name, strings.Join(scopes, ","),
		state, used)
}

// revokeAPIKeyCmd revokes a key. It asks for no confirmation: a leaked key must go at once, and a
// new one replaces it.
type revokeAPIKeyCmd struct {
	database
	ID string `arg:"" help:"The key's id, which is the part of the key between its two underscores, or the key itself."`
}

// Run fails if the key does not exist.
func (c *revokeAPIKeyCmd) Run(s *session) error {
	return c.withKeys(s, func(keys *apikey.Service) error {
		k, err := keys.Revoke(s.ctx, cliActor(), apikey.IDOf(c.ID))
		if err != nil {
			return err
		}
		return s.print(k, "revoked %s %q of merchant %s", k.ID, k.Name, k.MerchantID)
	})
}

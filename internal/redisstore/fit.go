package redisstore

import (
	"context"
	"fmt"
)

// Fit asks whether Redis answers, and whether it may be trusted with a sale: a server that evicts keys to make room
// would sell what it has forgotten. A server that does not tell its policy (an embedded or a managed one) is believed.
func (s *Store) Fit(ctx context.Context) error {
	if err := s.Ping(ctx); err != nil {
		return err
	}
	config, err := s.client.ConfigGet(ctx, "maxmemory-policy").Result()
	if policy := config["maxmemory-policy"]; err == nil && policy != "" && policy != "noeviction" {
		return fmt.Errorf("redis has maxmemory-policy %s: it must be noeviction, or it forgets what it sold", policy)
	}
	return nil
}

// Durable tells whether Redis keeps an append-only file; true where it does not say.
func (s *Store) Durable(ctx context.Context) bool {
	config, err := s.client.ConfigGet(ctx, "appendonly").Result()
	return err != nil || config["appendonly"] != "no"
}

package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"
)

// healthCmd is the probe of containers: the image holds nothing else that speaks HTTP.
type healthCmd struct {
	URL     string        `arg:"" help:"What to ask, such as http://127.0.0.1:8080/readyz."`
	Timeout time.Duration `default:"2s" help:"How long the answer may take."`
}

// Run succeeds where the answer is 200, and tells the body of any other.
func (c *healthCmd) Run(s *stage) error {
	ctx, cancel := context.WithTimeout(s.ctx, c.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.URL, nil)
	if err != nil {
		return fmt.Errorf("health: %w", err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("health: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusOK {
		return nil
	}
	body, _ := io.ReadAll(io.LimitReader(resp.Body, 4<<10)) // as much of it as came
	return fmt.Errorf("health: %s: %s", resp.Status, body)
}

package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"
)

// healthCmd is the probe of containers. Their image contains no other HTTP client.
type healthCmd struct {
	URL     string        `arg:"" help:"URL of the probe, such as http://127.0.0.1:8080/readyz."`
	Timeout time.Duration `default:"2s" help:"Longest time to wait for the response."`
}

// Run succeeds if the status is 200. Otherwise the error has the status and the body. An
// orchestrator keeps the output of a failed probe, so the error must say which part is not ready.
func (c *healthCmd) Run(s *session) error {
	ctx, cancel := context.WithTimeout(s.ctx, c.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.URL, nil)
	if err != nil {
		return fmt.Errorf("request %s: %w", c.URL, err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("request %s: %w", c.URL, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusOK {
		return nil
	}
	// an incomplete body is good enough for a message
	body, _ := io.ReadAll(io.LimitReader(resp.Body, 4<<10))
	return fmt.Errorf("%s is not ready: %s: %s", c.URL, resp.Status, body)
}

package main

import (
	"bytes"
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

// Run prints the body and succeeds if the status is 200. A node is ready while MySQL is away, and
// its body names the cause. Otherwise the error has the status and the body: an orchestrator keeps
// the output of a failed probe, so the error must say which part is not ready.
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
	// an incomplete body is good enough for a message
	body, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if resp.StatusCode == http.StatusOK {
		_, err := fmt.Fprintf(s.stdout, "%s\n", bytes.TrimSpace(body))
		return err
	}
	return fmt.Errorf("%s is not ready: %s: %s", c.URL, resp.Status, body)
}

package apiclient

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"
)

// maxBody bounds the bytes that are read of an answer.
const maxBody = 1 << 20

// Client calls an API as one user. Clients of many users share one HTTP client.
type Client struct {
	Base  string // http://host:port
	Token string
	HTTP  *http.Client
}

// Answer is an answer in the API's common shape, with its status.
type Answer struct {
	Status     int
	Code       int             `json:"code"`
	Reason     string          `json:"reason"`
	Message    string          `json:"message"`
	Data       json.RawMessage `json:"data"`
	RequestID  string          `json:"requestId"`
	RetryAfter time.Duration   // of the header; 0 without one
}

// Call makes one call and reads its answer; body may be nil. An answer without the API's common shape
// is an error. A refusal is not: its status and reason are in the answer.
func (c Client) Call(ctx context.Context, method, path string, body any) (Answer, error) {
	text, err := encode(body)
	if err != nil {
		return Answer{}, err
	}
	req, err := http.NewRequestWithContext(ctx, method, c.Base+path, text)
	if err != nil {
		return Answer{}, fmt.Errorf("make a request: %w", err)
	}
	if c.Token != "" {
		req.Header.Set("Authorization", "Bearer "+c.Token)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := c.HTTP.Do(req)
	if err != nil {
		return Answer{}, fmt.Errorf("call %s %s: %w", method, path, err)
	}
	defer resp.Body.Close()
	return read(resp)
}

// encode returns nil for a nil body, so that the request has none.
func encode(body any) (io.Reader, error) {
	if body == nil {
		return nil, nil
	}
	text, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("encode a request: %w", err)
	}
	return bytes.NewReader(text), nil
}

// read decodes an answer. A body of another shape, such as a proxy's error page, is an error that
// keeps the status.
func read(resp *http.Response) (Answer, error) {
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxBody))
	if err != nil {
		return Answer{}, fmt.Errorf("read an answer: %w", err)
	}
	a := Answer{Status: resp.StatusCode}
	if err := json.Unmarshal(text, &a); err != nil || a.Reason == "" {
		return a, fmt.Errorf("status %d with an unknown body: %.200q", resp.StatusCode, text)
	}
	if s, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil {
		a.RetryAfter = time.Duration(s) * time.Second
	}
	return a, nil
}

// Into decodes the answer's data. A status of 300 or more is an error.
func (a Answer) Into(data any) error {
	if a.Status >= 300 {
		return fmt.Errorf("status %d %s: %s", a.Status, a.Reason, a.Message)
	}
	if err := json.Unmarshal(a.Data, data); err != nil {
		return fmt.Errorf("read an answer's data: %w", err)
	}
	return nil
}

// Do makes a call that must succeed and decodes its data.
func (c Client) Do(ctx context.Context, method, path string, body, data any) error {
	a, err := c.Call(ctx, method, path, body)
	if err == nil {
		err = a.Into(data)
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	return nil
}

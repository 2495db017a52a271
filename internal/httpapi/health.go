package httpapi

import (
	"context"

	"flashsale.dev/seckill/internal/seckill"
)

// livez is GET /livez. It checks no dependency: a restart would not repair one.
func (a *api) livez(context.Context, *request) (response, error) {
	return response{reason: reasonOK, public: true}, nil
}

type readyResponse struct {
	Ready bool              `json:"ready"`
	Parts map[string]string `json:"parts"` // state of each dependency by name
}

// readyz answers 503 where a load balancer should send this node no requests.
func (a *api) readyz(ctx context.Context, _ *request) (response, error) {
	ready, parts := a.Health.Ready(ctx)
	if !ready {
		e := seckill.NewError(seckill.Unavailable, "not ready")
		e.Data = map[string]any{"ready": false, "parts": parts}
		return response{}, e
	}
	data := readyResponse{Ready: true, Parts: parts}
	return response{reason: reasonOK, data: data, public: true}, nil
}

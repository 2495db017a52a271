package httpapi

import (
	"context"

	"flashsale.dev/seckill/internal/apierror"
)

// probes are the calls of load balancers and orchestrators. They ignore query and body, because
// some of those add parameters of their own.
func (a *api) probes() []route {
	return []route{
		{methods: read, path: "/livez", public: true, unchecked: true, handle: a.livez},
		{methods: read, path: "/readyz", public: true, unchecked: true, handle: a.readyz},
	}
}

// livez is GET /livez. It checks no dependency: a restart would not repair one.
func (a *api) livez(context.Context, *request) (response, error) {
	return response{reason: reasonOK, public: true}, nil
}

// readyz is GET /readyz: 503 where a load balancer should send this node no requests. The data
// lists the state of each dependency, so that an operator can find the failed one.
func (a *api) readyz(ctx context.Context, _ *request) (response, error) {
	ready, parts := a.Ready(ctx)
	data := map[string]any{"ready": ready, "parts": parts}
	if !ready {
		return response{}, apierror.New(apierror.Unavailable, "not ready").With("", data)
	}
	return response{reason: reasonOK, data: data, public: true}, nil
}

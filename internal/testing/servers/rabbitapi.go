package servers

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/google/uuid"
)

// managementAPI is the broker's HTTP API: a vhost in 20 ms, where rabbitmqctl starts an Erlang machine for each call.
type managementAPI struct{ root string }

// NewVHost makes a vhost for one test and returns its AMQP URL; it is deleted, with all in it, at cleanup. RestartEmpty takes it along.
func (r *RabbitServer) NewVHost(tb testing.TB) string {
	tb.Helper()
	name, err := r.CreateVHost(tb.Context())
	if err != nil {
		tb.Fatalf("servers: %v", err)
	}
	tb.Cleanup(func() {
		if !r.proc.running() {
			return // a broker that was killed keeps it until its data goes
		}
		if err := r.DeleteVHost(context.WithoutCancel(tb.Context()), name); err != nil {
			tb.Errorf("servers: %v", err)
		}
	})
	return r.URL() + name
}

// NewVHost makes a vhost for one test and returns its name, for URLs; it goes with the cluster.
func (c *RabbitNodes) NewVHost(tb testing.TB) string {
	tb.Helper()
	name, err := c.Nodes[0].CreateVHost(tb.Context())
	if err != nil {
		tb.Fatalf("servers: %v", err)
	}
	return name
}

// CreateVHost makes a vhost that nobody else has, open to guest, and returns its name. Its URL is URL() with the name appended.
func (r *RabbitServer) CreateVHost(ctx context.Context) (string, error) {
	name := "test-" + uuid.NewString()
	if err := r.api.call(ctx, http.MethodPut, "/api/vhosts/"+name, nil); err != nil {
		return "", fmt.Errorf("create vhost: %w", err)
	}
	return name, nil
}

// DeleteVHost removes a vhost, its queues and its connections. One that is gone already is no error.
func (r *RabbitServer) DeleteVHost(ctx context.Context, name string) error {
	if err := r.api.call(ctx, http.MethodDelete, "/api/vhosts/"+name, nil); err != nil {
		return fmt.Errorf("delete vhost: %w", err)
	}
	return nil
}

// isNode says nil when the API answers for the node of that name.
func (a managementAPI) isNode(ctx context.Context, name string) error {
	var overview struct {
		Node string `json:"node"`
	}
	if err := a.call(ctx, http.MethodGet, "/api/overview", &overview); err != nil {
		return err
	}
	if overview.Node != name {
		return fmt.Errorf("somebody else's node %q answers", overview.Node)
	}
	return nil
}

// call makes one request, on a connection of its own, and decodes the answer into out where that is not nil.
func (a managementAPI) call(ctx context.Context, method, path string, out any) error {
	ctx, cancel := context.WithTimeout(ctx, 90*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, a.root+path, http.NoBody)
	if err != nil {
		return err
	}
	request.Close = true
	request.SetBasicAuth("guest", "guest")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close() // read to its end
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	gone := method == http.MethodDelete && response.StatusCode == http.StatusNotFound
	if response.StatusCode/100 != 2 && !gone {
		return fmt.Errorf("%s %s: %s: %s", method, path, response.Status, body)
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(body, out)
}

package servers

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/google/uuid"
)

// NewVHost makes a vhost for one test and returns its AMQP URL; it is deleted, with all in it, at
// cleanup. RestartEmpty takes it along.
func (r *RabbitServer) NewVHost(tb testing.TB) string {
	tb.Helper()
	name := r.makeVHost(tb)
	tb.Cleanup(func() {
		if !r.Running() {
			return // a broker that was killed keeps it until its data goes
		}
		if err := r.Manage(context.WithoutCancel(tb.Context()), http.MethodDelete,
			"/api/vhosts/"+name, nil); err != nil {
			tb.Errorf("servers: %v", err)
		}
	})
	return r.URL() + name
}

// NewVHost makes a vhost for one test and returns its name, for URLs; it goes with the cluster.
func (c *RabbitNodes) NewVHost(tb testing.TB) string {
	tb.Helper()
	return c.Nodes[0].makeVHost(tb)
}

// makeVHost makes a vhost of a name that no other has, open to guest, and returns it.
func (r *RabbitServer) makeVHost(tb testing.TB) string {
	tb.Helper()
	name := "test-" + uuid.NewString()
	check(tb, r.Manage(tb.Context(), http.MethodPut, "/api/vhosts/"+name, nil))
	return name
}

// Place is where a quorum queue is, by the names of nodes.
type Place struct {
	Leader  string
	Members []string
}

// Place asks a node where a quorum queue is.
func (r *RabbitServer) Place(ctx context.Context, vhost, queue string) (p Place, err error) {
	err = r.Manage(ctx, http.MethodGet,
		"/api/queues/"+url.PathEscape(vhost)+"/"+url.PathEscape(queue), &p)
	return p, err
}

// Manage makes one request to the broker's HTTP API and decodes the answer into out where that is
// not nil. It makes a vhost in 20 ms, where rabbitmqctl starts an Erlang machine for each call.
func (r *RabbitServer) Manage(ctx context.Context, method, path string, out any) error {
	return callHTTP(ctx, method, "http://"+loopback(r.ports.management)+path, out)
}

// callHTTP makes one request, on a connection of its own. What is to be deleted may be gone
// already.
func callHTTP(ctx context.Context, method, target string, out any) error {
	ctx, cancel := context.WithTimeout(ctx, 90*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, target, http.NoBody)
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
		return fmt.Errorf("%s %s: %w", method, target, err)
	}
	gone := method == http.MethodDelete && response.StatusCode == http.StatusNotFound
	if response.StatusCode/100 != 2 && !gone {
		return fmt.Errorf("%s %s: %s: %s", method, target, response.Status, body)
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(body, out)
}

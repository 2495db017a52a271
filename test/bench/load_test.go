package bench

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/testing/must"
)

// load is a number of requests, which are sent in turn over the given number of connections. Each
// connection sends its next request when it has the answer to its last one. An answer with a random
// path leads to the purchase with it.
type load struct {
	addr        string
	connections int
	requests    [][]byte
	n           int // more than there are requests repeats them
	want        int // the status of the final answers
}

// loader is the program that sends a load where it is installed: it costs a third of the client of
// this package. Its processor time is nobody's in the tables.
const loader = "wrk"

// play sends a load, and returns how many wanted answers came in which time. Any other status is an
// error. wrk ends with the last request, and leaves the answers on the way.
func (l load) play(b *testing.B) (answered int, took time.Duration) {
	b.Helper()
	program, err := exec.LookPath(loader)
	if err != nil {
		return l.n, crowd(b, l.addr, l.connections, l.n, func(c *client, i int) error {
			return c.follow(l.requests[i%len(l.requests)], l.want)
		})
	}
	file := filepath.Join(b.TempDir(), "requests")
	require.NoError(b, os.WriteFile(file, bytes.Join(l.requests, []byte{0}), 0o600))
	ctx, cancel := context.WithTimeout(b.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "-t1", "-c", strconv.Itoa(l.connections), "-d5m",
		"-T1m", "-s", "wrk.lua", "http://"+l.addr, "--", file, strconv.Itoa(l.n),
		strconv.Itoa(l.want))
	out, err := cmd.CombinedOutput()
	require.NoError(b, err, "%s", out)
	result := regexp.MustCompile(`answered (\d+) in ([\d.]+ ?s)`).FindSubmatch(out)
	require.NotNil(b, result, "%s", out)
	seconds := bytes.ReplaceAll(result[2], []byte(" "), nil)
	return must.Get(strconv.Atoi(string(result[1])))(b),
		must.Get(time.ParseDuration(string(seconds)))(b)
}

// follow sends a request, and the purchase that its answer permits.
func (c *client) follow(request []byte, want int) error {
	status, body, err := c.talk(request)
	if err != nil || status == want {
		return err
	}
	next, err := purchaseOf(request, status, body)
	if err != nil {
		return err
	}
	return c.ask(next, want)
}

var pathField = []byte(`"randomPath":"`)

// purchaseOf returns the purchase that the answer to a request permits.
func purchaseOf(request []byte, status int, body []byte) ([]byte, error) {
	_, path, found := bytes.Cut(body, pathField)
	if status != http.StatusOK || !found {
		return nil, fmt.Errorf("no random path: status %d: %s", status, body)
	}
	_, query, _ := bytes.Cut(request, []byte("?"))
	return fmt.Appendf(nil, "POST /%s/decrStock?%s", path[:32], query), nil
}

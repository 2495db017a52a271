package servers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// RabbitServer is a private rabbitmq-server, with the management plugin for its HTTP API: a broker of its own with the epmd it
// needs, or a node of RabbitNodes.
type RabbitServer struct {
	*Server
	epmd  *process     // nil where the cluster has port mappers
	nodes *RabbitNodes // nil where it is alone
	env   []string     // for rabbitmq-server and rabbitmqctl alike
	ports rabbitPorts
	api   managementAPI
}

type rabbitPorts struct{ amqp, management, distribution, epmd int }

// RabbitMQ starts a rabbitmq-server for one test (6 s; a Suite shares one) and stops it at cleanup.
func RabbitMQ(tb testing.TB) *RabbitServer {
	tb.Helper()
	return forTest(tb, "rabbitmq", StartRabbitMQ)
}

// StartRabbitMQ runs a rabbitmq-server with its data and log in dir and returns when it takes connections. The caller stops it.
func StartRabbitMQ(ctx context.Context, dir string) (*RabbitServer, error) {
	path, err := rabbitProgram()
	if err != nil {
		return nil, err
	}
	epmd, err := exec.LookPath("epmd")
	if err != nil {
		return nil, fmt.Errorf("epmd is %w (%w)", ErrMissing, err)
	}
	return retryPorts(func() (*RabbitServer, error) {
		server, err := newRabbit(path, epmd, dir)
		if err != nil {
			return nil, fmt.Errorf("set up rabbitmq-server: %w", err)
		}
		if err := server.boot(ctx); err != nil {
			return nil, fmt.Errorf("start rabbitmq-server: %w", err)
		}
		return server, nil
	})
}

// rabbitProgram: Debian's /usr/sbin/rabbitmq-server switches user and leaves a daemon: the script it wraps does neither.
func rabbitProgram() (string, error) {
	return program("rabbitmq-server", "/usr/lib/rabbitmq/bin/rabbitmq-server", "/opt/homebrew/opt/rabbitmq/sbin/rabbitmq-server")
}

// URL is the broker's address for AMQP, with its first vhost.
func (r *RabbitServer) URL() string {
	return fmt.Sprintf("amqp://guest:guest@%s/", loopback(r.ports.amqp))
}

// ManagementURL is the root of the HTTP API, for the account guest:guest.
func (r *RabbitServer) ManagementURL() string { return r.api.root }

// Stop ends the broker in an orderly way (it takes some 6 s over it) and its epmd with it.
func (r *RabbitServer) Stop() error { return errors.Join(r.Server.Stop(), r.endEpmd()) }

// Restart is Server.Restart; an epmd that Stop took along is started too.
func (r *RabbitServer) Restart(ctx context.Context) error {
	return errors.Join(r.startEpmd(), r.Server.Restart(ctx))
}

// RestartEmpty is Server.RestartEmpty: vhosts, queues, messages and accounts but guest are gone. A node of a cluster is forgotten by
// the others, joins them again with an empty disk, and gets back its place in every quorum queue.
func (r *RabbitServer) RestartEmpty(ctx context.Context) error {
	if r.nodes != nil {
		return r.nodes.restartEmpty(ctx, r)
	}
	return errors.Join(r.startEpmd(), r.Server.RestartEmpty(ctx))
}

// Ctl runs rabbitmqctl on this broker and returns what it printed (half a second of Erlang's start: prefer the HTTP API in loops).
func (r *RabbitServer) Ctl(ctx context.Context, args ...string) (string, error) {
	return r.tool(ctx, "rabbitmqctl", args...)
}

// tool runs one of the broker's command line tools.
func (r *RabbitServer) tool(ctx context.Context, name string, args ...string) (string, error) {
	path := filepath.Join(filepath.Dir(r.proc.path), name)
	cmd := exec.CommandContext(ctx, path, append([]string{"--quiet"}, args...)...)
	cmd.Env, cmd.Dir = r.env, r.proc.dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("%s %v: %w\n%s", name, args, err, out)
	}
	return string(out), nil
}

func (r *RabbitServer) boot(ctx context.Context) error {
	if err := r.startEpmd(); err != nil {
		return err
	}
	if err := r.first(ctx); err != nil {
		return errors.Join(err, r.endEpmd())
	}
	return nil
}

// startEpmd runs the node's own Erlang port mapper. Without it the node would start one as a daemon, which outlives the test.
func (r *RabbitServer) startEpmd() error {
	if r.epmd == nil || r.epmd.running() {
		return nil
	}
	return r.epmd.start()
}

func (r *RabbitServer) endEpmd() error {
	if r.epmd == nil {
		return nil
	}
	return r.epmd.kill()
}

// discard kills broker and epmd, whose data is about to be removed.
func (r *RabbitServer) discard() error { return errors.Join(r.Server.discard(), r.endEpmd()) }

// ask says nil when our node, and not another, serves HTTP and takes AMQP connections.
func (r *RabbitServer) ask(ctx context.Context) error {
	if err := r.api.isNode(ctx, r.ports.node()); err != nil {
		return err
	}
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", loopback(r.ports.amqp))
	if err != nil {
		return err
	}
	return conn.Close()
}

func newRabbit(path, epmd, dir string) (*RabbitServer, error) {
	ports, err := newRabbitPorts()
	if err != nil {
		return nil, err
	}
	r := rabbitOn(path, dir, ports, func() error { return configureRabbit(dir, ports, "") })
	r.epmd = &process{command: command{
		path: epmd, args: []string{"-address", "127.0.0.1", "-port", strconv.Itoa(ports.epmd)},
		env: r.env, dir: dir, log: filepath.Join(dir, "epmd.log"),
	}}
	return r, nil
}

func newRabbitPorts() (rabbitPorts, error) {
	found, err := freePorts(4)
	if err != nil {
		return rabbitPorts{}, err
	}
	return rabbitPorts{amqp: found[0], management: found[1], distribution: found[2], epmd: found[3]}, nil
}

// rabbitOn is a node that has yet to be started; more are settings of its environment.
func rabbitOn(path, dir string, ports rabbitPorts, configure func() error, more ...string) *RabbitServer {
	env := append(rabbitEnv(dir, ports), more...)
	r := &RabbitServer{env: env, ports: ports, api: managementAPI{root: "http://" + loopback(ports.management)}}
	r.Server = &Server{
		name:    "rabbitmq-server",
		proc:    process{command: command{path: path, env: env, dir: dir, log: filepath.Join(dir, "rabbit.log")}},
		timeout: 120 * time.Second,
		prepare: func(context.Context) error { return configure() },
		wipe:    func() error { return os.RemoveAll(filepath.Join(dir, "mnesia")) },
		ready:   r.ask,
	}
	return r
}

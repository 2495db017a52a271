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
	"strings"
	"testing"
)

// RabbitServer is a private rabbitmq-server with the management plugin for its HTTP API. It is a
// single broker, or a node of RabbitNodes.
type RabbitServer struct {
	*Server
	mapper *portMapper  // stands in for epmd
	nodes  *RabbitNodes // nil for a single broker
	ports  rabbitPorts
}

type rabbitPorts struct{ amqp, management, distribution, epmd int }

// RabbitMQ starts a rabbitmq-server for one test (6 s; a Suite shares one) and stops it at cleanup.
func RabbitMQ(tb testing.TB) *RabbitServer {
	tb.Helper()
	return forTest(tb, "rabbitmq", StartRabbitMQ)
}

// StartRabbitMQ runs a rabbitmq-server with its data and log in dir. It returns when the broker
// accepts connections. The caller stops it.
func StartRabbitMQ(ctx context.Context, dir string) (*RabbitServer, error) {
	return withProgram(ctx, "rabbitmq-server", func(path string) (*RabbitServer, error) {
		r, err := newRabbit(path, dir)
		if err != nil {
			return nil, err
		}
		r.prepare = func(context.Context) error { return r.configure("") }
		r.mapper, err = startPortMapper(r.ports.epmd, map[string]uint16{
			r.shortName(): uint16(r.ports.distribution),
		})
		return r, err
	})
}

// Name returns the Erlang node's name. It contains the port, so it is unique on the machine.
func (r *RabbitServer) Name() string {
	return r.shortName() + "@localhost"
}

func (r *RabbitServer) shortName() string { return fmt.Sprintf("seckill%d", r.ports.distribution) }

// URL returns the broker's AMQP address with its default vhost.
func (r *RabbitServer) URL() string {
	return fmt.Sprintf("amqp://guest:guest@%s/", loopback(r.ports.amqp))
}

// Stop ends the broker in an orderly way (about 6 s), for good.
func (r *RabbitServer) Stop() error {
	defer r.mapper.close()
	return r.Server.Stop()
}

// discard kills the broker before the deletion of its data.
func (r *RabbitServer) discard() error {
	defer r.mapper.close()
	return r.Server.discard()
}

// RestartEmpty works as Server.RestartEmpty. All vhosts, queues, messages and accounts but guest
// are lost. The other nodes of a cluster forget the node. It joins them again with an empty disk
// and gets a member of every quorum queue.
func (r *RabbitServer) RestartEmpty(ctx context.Context) error {
	if r.nodes != nil {
		return r.nodes.restartEmpty(ctx, r)
	}
	return r.Server.RestartEmpty(ctx)
}

// Ctl runs rabbitmqctl on this broker and returns its output. Erlang's start takes half a second,
// so loops use the HTTP API.
func (r *RabbitServer) Ctl(ctx context.Context, args ...string) (string, error) {
	return r.tool(ctx, "rabbitmqctl", args...)
}

// tool runs one of the broker's command line tools.
func (r *RabbitServer) tool(ctx context.Context, name string, args ...string) (string, error) {
	path, err := program(name)
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, path, append([]string{"--quiet"}, args...)...)
	cmd.Env, cmd.Dir = r.proc.Env, r.proc.Dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%s %v: %w\n%s", name, args, err, out)
	}
	return string(out), err
}

// isReady returns nil when this node serves HTTP and accepts AMQP connections. It detects another
// node on the same port.
func (r *RabbitServer) isReady(ctx context.Context) error {
	var overview struct{ Node string }
	if err := r.Manage(ctx, "GET", "/api/overview", &overview); err != nil {
		return err
	}
	if overview.Node != r.Name() {
		return fmt.Errorf("another node, %q, answers", overview.Node)
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", loopback(r.ports.amqp))
	if err != nil {
		return err
	}
	return conn.Close()
}

// newRabbit returns a node without configuration that has not started. more holds further
// environment variables.
func newRabbit(path, dir string, more ...string) (*RabbitServer, error) {
	found, err := freePorts(4)
	if err != nil {
		return nil, err
	}
	r := &RabbitServer{ports: rabbitPorts{found[0], found[1], found[2], found[3]}}
	r.Server = &Server{
		name: "rabbitmq-server", data: filepath.Join(dir, "mnesia"), ready: r.isReady,
		proc: Process{
			Path: path, Env: append(r.env(dir), more...), Dir: dir,
			File: filepath.Join(dir, "rabbit.log"),
		},
	}
	return r, nil
}

// env keeps all files of the broker in dir. It ignores the caller's RabbitMQ and Erlang settings.
func (r *RabbitServer) env(dir string) []string {
	env := []string{
		"HOME=" + dir, // for .erlang.cookie
		// The start script then replaces itself with the broker (exec). Its pid is therefore the
		// broker's.
		"RUNNING_UNDER_SYSTEMD=true",
		"ERL_EPMD_ADDRESS=127.0.0.1",
		"ERL_EPMD_PORT=" + strconv.Itoa(r.ports.epmd),
		"RABBITMQ_NODENAME=" + r.Name(),
		"RABBITMQ_DIST_PORT=" + strconv.Itoa(r.ports.distribution),
		"RABBITMQ_LOGS=-",
	}
	for name, file := range map[string]string{
		"MNESIA_BASE": "mnesia", "LOG_BASE": "log", "CONFIG_FILE": "rabbitmq.conf",
		"CONF_ENV_FILE": "none", "ADVANCED_CONFIG_FILE": "none.config", "PID_FILE": "pid",
		"ENABLED_PLUGINS_FILE": "enabled_plugins", "GENERATED_CONFIG_DIR": "generated",
	} {
		env = append(env, "RABBITMQ_"+name+"="+filepath.Join(dir, file))
	}
	for _, entry := range os.Environ() {
		name, _, _ := strings.Cut(entry, "=")
		if name != "HOME" && !strings.HasPrefix(name, "RABBITMQ_") &&
			!strings.HasPrefix(name, "ERL_") {
			env = append(env, entry)
		}
	}
	return env
}

// configure writes the files that the environment names. more holds further lines of rabbitmq.conf.
func (r *RabbitServer) configure(more string) error {
	conf := fmt.Sprintf(`listeners.tcp.1 = 127.0.0.1:%d
management.tcp.ip = 127.0.0.1
management.tcp.port = %d
management.rates_mode = none
vm_memory_high_watermark.absolute = 1GB
disk_free_limit.absolute = 50MB
`, r.ports.amqp, r.ports.management)
	dir := r.proc.Dir
	return errors.Join(
		os.WriteFile(filepath.Join(dir, "rabbitmq.conf"), []byte(conf+more), 0o600),
		os.WriteFile(filepath.Join(dir, "enabled_plugins"), []byte("[rabbitmq_management].\n"),
			0o600))
}

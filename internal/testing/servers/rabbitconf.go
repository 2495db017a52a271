package servers

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// node is the Erlang node's name: the port makes it the machine's only one of that name.
func (p rabbitPorts) node() string { return fmt.Sprintf("seckill%d@localhost", p.distribution) }

// rabbitEnv keeps every file of the broker in dir and takes nothing from the caller's RabbitMQ or Erlang settings.
func rabbitEnv(dir string, ports rabbitPorts) []string {
	env := []string{
		"HOME=" + dir, // .erlang.cookie
		// The start script then becomes the broker (exec) instead of its parent, so that its pid is the broker's.
		"RUNNING_UNDER_SYSTEMD=true",
		"ERL_EPMD_ADDRESS=127.0.0.1",
		"ERL_EPMD_PORT=" + strconv.Itoa(ports.epmd),
		"RABBITMQ_NODENAME=" + ports.node(),
		"RABBITMQ_DIST_PORT=" + strconv.Itoa(ports.distribution),
		"RABBITMQ_LOGS=-",
	}
	for name, file := range map[string]string{
		"MNESIA_BASE": "mnesia", "LOG_BASE": "log", "CONFIG_FILE": "rabbitmq.conf", "CONF_ENV_FILE": "none",
		"ADVANCED_CONFIG_FILE": "none.config", "ENABLED_PLUGINS_FILE": "enabled_plugins", "PID_FILE": "pid",
		"GENERATED_CONFIG_DIR": "generated",
	} {
		env = append(env, "RABBITMQ_"+name+"="+filepath.Join(dir, file))
	}
	for _, entry := range os.Environ() {
		if foreign := strings.HasPrefix(entry, "RABBITMQ_") || strings.HasPrefix(entry, "ERL_") || strings.HasPrefix(entry, "HOME="); !foreign {
			env = append(env, entry)
		}
	}
	return env
}

// configureRabbit writes the files that the environment points at; more are further lines of rabbitmq.conf.
func configureRabbit(dir string, ports rabbitPorts, more string) error {
	conf := fmt.Sprintf(`listeners.tcp.1 = 127.0.0.1:%d
management.tcp.ip = 127.0.0.1
management.tcp.port = %d
management.rates_mode = none
vm_memory_high_watermark.absolute = 1GB
disk_free_limit.absolute = 50MB
`, ports.amqp, ports.management)
	if err := os.WriteFile(filepath.Join(dir, "rabbitmq.conf"), []byte(conf+more), 0o600); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "enabled_plugins"), []byte("[rabbitmq_management].\n"), 0o600)
}

package servers

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// The ports lie below Linux's ephemeral range (32768 up): while a server is down between a kill and a restart, no outgoing
// connection can be given its port.
const (
	firstPort = 12000
	portCount = 20000
)

// freePort finds a loopback TCP port that nobody listens on now. Two callers can meet on one, so that a start is tried again with
// others when the server says that its port is taken.
func freePort() (int, error) {
	var last error
	for range 100 {
		port := firstPort + rand.IntN(portCount)
		listener, err := net.Listen("tcp", loopback(port))
		if err != nil {
			last = err
			continue
		}
		if err := listener.Close(); err != nil {
			return 0, fmt.Errorf("give up port %d: %w", port, err)
		}
		return port, nil
	}
	return 0, fmt.Errorf("find a free port: %w", last)
}

// freePorts finds n different ones.
func freePorts(n int) ([]int, error) {
	seen := map[int]bool{}
	ports := make([]int, 0, n)
	for len(ports) < n {
		port, err := freePort()
		if err != nil {
			return nil, err
		}
		if !seen[port] {
			seen[port] = true
			ports = append(ports, port)
		}
	}
	return ports, nil
}

// loopback is port's address in the form host:port.
func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

package servers

import (
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
)

// The ports lie below Linux's ephemeral range (32768 up): while a server is down between a kill and
// a restart, no outgoing connection can be given its port.
const (
	firstPort = 12000
	portCount = 20000
)

// freePort finds a loopback TCP port that is free now. Two callers can find the same one, so that a
// start is tried again with others when the server says that its port is taken.
func freePort() (int, error) {
	ports, err := freePorts(1)
	if err != nil {
		return 0, err
	}
	return ports[0], nil
}

// freePorts finds n different ones.
func freePorts(n int) (ports []int, err error) {
	for range 100 * n {
		if len(ports) == n {
			return ports, nil
		}
		port := firstPort + rand.IntN(portCount)
		listener, listenErr := net.Listen("tcp", loopback(port))
		if listenErr != nil {
			err = listenErr
		} else if err = listener.Close(); err == nil && !slices.Contains(ports, port) {
			ports = append(ports, port)
		}
	}
	return nil, fmt.Errorf("find %d free ports: %w", n, err)
}

// loopback is port's address in the form host:port.
func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

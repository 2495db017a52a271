package servers

import (
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"testing"
)

// The ports are below Linux's ephemeral range (32768 up). Therefore no outgoing connection gets the
// port of a server between its kill and its restart.
const (
	firstPort = 12000
	portCount = 20000
)

// FreeAddr returns an address of host, an IP, on which no program listens.
func FreeAddr(tb testing.TB, host string) string {
	tb.Helper()
	ports, err := freePortsOf(host, 1)
	if err != nil {
		tb.Fatal(err)
	}
	return net.JoinHostPort(host, strconv.Itoa(ports[0]))
}

// freePort returns a free loopback TCP port. Two callers can get the same port, so a start retries
// when the server reports a taken port.
func freePort() (int, error) {
	ports, err := freePorts(1)
	if err != nil {
		return 0, err
	}
	return ports[0], nil
}

// freePorts returns n different free loopback ports.
func freePorts(n int) ([]int, error) { return freePortsOf("127.0.0.1", n) }

func freePortsOf(host string, n int) (ports []int, err error) {
	for range 100 * n {
		if len(ports) == n {
			return ports, nil
		}
		port := firstPort + rand.IntN(portCount)
		listener, listenErr := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(port)))
		if listenErr != nil {
			err = listenErr
		} else if err = listener.Close(); err == nil && !slices.Contains(ports, port) {
			ports = append(ports, port)
		}
	}
	return nil, fmt.Errorf("find %d free ports: %w", n, err)
}

// loopback returns port's address as host:port.
func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

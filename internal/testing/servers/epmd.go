package servers

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
)

// portMapper is Erlang's port mapper (epmd) for one node, in this process. It reports its node the
// port of each peer, and may report each node another one: so what two nodes say to each other goes
// over a wire that a test can cut, while clients reach both.
//
// It speaks as much of the protocol as nodes and their command line tools need: ALIVE2_REQ,
// PORT_PLEASE2_REQ and NAMES_REQ (Erlang/OTP, ERTS User's Guide, Distribution Protocol).
type portMapper struct {
	listener net.Listener
	// ports of the distribution, by the part of a node's name before the @; fixed
	ports   map[string]uint16
	running sync.WaitGroup
	ended   context.Context
	end     context.CancelFunc
}

// Tags of the protocol.
const (
	epmdAlive      = 120
	epmdAliveReply = 118
	epmdPort       = 122
	epmdPortReply  = 119
)

// startPortMapper listens on a port of loopback.
func startPortMapper(port int, ports map[string]uint16) (*portMapper, error) {
	listener, err := net.Listen("tcp", loopback(port))
	if err != nil {
		return nil, fmt.Errorf("listen as a port mapper: %w", err)
	}
	m := &portMapper{listener: listener, ports: ports}
	m.ended, m.end = context.WithCancel(context.Background())
	m.running.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			m.running.Go(func() { m.talk(conn) })
		}
	})
	return m, nil
}

// talk answers one request. A node that has registered keeps its connection for as long as it
// lives.
func (m *portMapper) talk(conn net.Conn) {
	defer conn.Close()
	defer context.AfterFunc(m.ended, func() { _ = conn.Close() })()
	request, err := readFrame(bufio.NewReader(conn))
	if err != nil {
		return
	}
	_, err = conn.Write(m.answer(request))
	if err == nil && request[0] == epmdAlive {
		_, _ = io.Copy(io.Discard, conn)
	}
}

func readFrame(r io.Reader) ([]byte, error) {
	var size uint16
	if err := binary.Read(r, binary.BigEndian, &size); err != nil {
		return nil, err
	}
	if size == 0 {
		return nil, errors.New("an empty request")
	}
	frame := make([]byte, size)
	_, err := io.ReadFull(r, frame)
	return frame, err
}

// answer to any other request than the two below is that of NAMES_REQ with no names: the port
// mapper's own port.
func (m *portMapper) answer(request []byte) []byte {
	switch request[0] {
	case epmdAlive: // every node may register; the creation is the same for all
		return []byte{epmdAliveReply, 0, 0, 0, 0, 4}
	case epmdPort:
		return portReply(string(request[1:]), m.ports)
	}
	port, _ := m.listener.Addr().(*net.TCPAddr)
	return binary.BigEndian.AppendUint32(nil, uint32(port.Port))
}

// portReply says 1 for a name that is not known; else the port, a normal node (77) over TCP (0) and
// the versions 5 to 6.
func portReply(name string, ports map[string]uint16) []byte {
	port, known := ports[name]
	if !known {
		return []byte{epmdPortReply, 1}
	}
	out := binary.BigEndian.AppendUint16([]byte{epmdPortReply, 0}, port)
	out = append(out, 77, 0, 0, 6, 0, 5)
	out = binary.BigEndian.AppendUint16(out, uint16(len(name)))
	return append(append(out, name...), 0, 0)
}

// close ends it and every connection.
func (m *portMapper) close() {
	_ = m.listener.Close()
	m.end()
	m.running.Wait()
}

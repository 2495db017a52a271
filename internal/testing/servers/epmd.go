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

// portMapper is an in-process replacement of Erlang's port mapper (epmd) for one node. A node would
// start epmd as a daemon, which outlives the test. It reports each peer's port to its node. A port
// may be that of a wire, so a test can cut the traffic between two nodes while clients reach both.
//
// It implements the requests that nodes and their command line tools need: ALIVE2_REQ,
// PORT_PLEASE2_REQ and NAMES_REQ (Erlang/OTP, ERTS User's Guide, Distribution Protocol).
type portMapper struct {
	listener net.Listener
	// ports holds the distribution ports by the part of a node's name before the @. It does not
	// change.
	ports   map[string]uint16
	running sync.WaitGroup
	ended   context.Context
	end     context.CancelFunc
}

// These are the tags of the protocol.
const (
	epmdAlive      = 120
	epmdAliveReply = 118
	epmdPort       = 122
	epmdPortReply  = 119
)

// startPortMapper listens on a loopback port.
func startPortMapper(port int, ports map[string]uint16) (*portMapper, error) {
	listener, err := net.Listen("tcp", loopback(port))
	if err != nil {
		return nil, fmt.Errorf("listen as a port mapper: %w", errors.Join(err, errPortTaken))
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

// talk answers one request. A registered node keeps its connection as long as it lives.
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

// answer returns the reply to a request. Any request but the two below gets the reply to NAMES_REQ
// without names: the port mapper's own port.
func (m *portMapper) answer(request []byte) []byte {
	switch request[0] {
	case epmdAlive: // every node may register; all get the same creation
		return []byte{epmdAliveReply, 0, 0, 0, 0, 4}
	case epmdPort:
		name := string(request[1:])
		port, known := m.ports[name]
		if !known {
			return []byte{epmdPortReply, 1}
		}
		// It is a normal node (77) over TCP (0) and has the versions 5 to 6.
		out := binary.BigEndian.AppendUint16([]byte{epmdPortReply, 0}, port)
		out = append(out, 77, 0, 0, 6, 0, 5)
		out = binary.BigEndian.AppendUint16(out, uint16(len(name)))
		return append(append(out, name...), 0, 0)
	}
	port, _ := m.listener.Addr().(*net.TCPAddr)
	return binary.BigEndian.AppendUint32(nil, uint32(port.Port))
}

// close ends the port mapper and all its connections. It has no effect on nil.
func (m *portMapper) close() {
	if m == nil {
		return
	}
	_ = m.listener.Close()
	m.end()
	m.running.Wait()
}

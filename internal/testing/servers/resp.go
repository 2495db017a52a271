package servers

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

// respPatience bounds one question to a redis-server whose asker has set no closer deadline: a paused one never answers.
const respPatience = 5 * time.Second

// errRedis marks what a redis-server answered as an error.
var errRedis = errors.New("redis-server answers")

// askResp sends one command over a connection of its own and returns the answer: string, int64, nil or []any of them (RESP2,
// https://redis.io/docs/latest/develop/reference/protocol-spec/). It serves to set servers up; tests use a real client.
func askResp(ctx context.Context, addr string, command ...any) (any, error) {
	ctx, cancel := context.WithTimeout(ctx, respPatience)
	defer cancel()
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	defer conn.Close() // nothing is lost with it
	if deadline, ok := ctx.Deadline(); ok {
		_ = conn.SetDeadline(deadline)
	}
	if _, err := io.WriteString(conn, respCommand(command)); err != nil {
		return nil, fmt.Errorf("%v to %s: %w", command, addr, err)
	}
	answer, err := readResp(bufio.NewReader(conn))
	if err != nil {
		return nil, fmt.Errorf("%v to %s: %w", command, addr, err)
	}
	return answer, nil
}

func respCommand(words []any) string {
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(words))
	for _, word := range words {
		text := fmt.Sprint(word)
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(text), text)
	}
	return b.String()
}

func readResp(from *bufio.Reader) (any, error) {
	line, err := from.ReadString('\n')
	if err != nil {
		return nil, err
	}
	kind, text := line[0], strings.TrimSpace(line[1:])
	switch kind {
	case '+':
		return text, nil
	case '-':
		return nil, fmt.Errorf("%w: %s", errRedis, text)
	case ':':
		return strconv.ParseInt(text, 10, 64)
	case '$', '*':
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 {
			return nil, err
		}
		if kind == '$' {
			return readBulk(from, n)
		}
		return readArray(from, n)
	default:
		return nil, fmt.Errorf("an answer of an unknown kind: %q", line)
	}
}

func readBulk(from io.Reader, n int) (any, error) {
	text := make([]byte, n+len("\r\n"))
	if _, err := io.ReadFull(from, text); err != nil {
		return nil, err
	}
	return string(text[:n]), nil
}

func readArray(from *bufio.Reader, n int) (any, error) {
	list := make([]any, n)
	for i := range list {
		var err error
		if list[i], err = readResp(from); err != nil {
			return nil, err
		}
	}
	return list, nil
}

package servers

import (
	"errors"
	"fmt"
	"net"
	"os/exec"
	"slices"
	"strconv"
	"strings"
)

// Cut blocks all traffic between a member and the others, in both directions, until Restore. It
// does not affect clients. It needs root, because it changes the kernel's rules for loopback, and
// iptables and ss.
//
// Members connect to each other's group port, so Cut drops all packets of the member's group port.
// It also drops the connections that the member itself opened. A new connection to the others may
// come from any member, so Cut drops all of them.
func (g *SQLGroup) Cut(m *SQLServer) error {
	i := slices.Index(g.members, m)
	if i < 0 {
		return errors.New("cut a member off: it is none of this group's")
	}
	own := strconv.Itoa(g.ports[i])
	rules := [][]string{{"--dport", own}, {"--sport", own}}
	made, err := g.connections(m)
	if err != nil {
		return fmt.Errorf("cut a member off: %w", err)
	}
	for j, port := range g.ports {
		other := strconv.Itoa(port)
		if j == i {
			continue
		}
		rules = append(rules, []string{"--syn", "--dport", other})
		for _, from := range made[other] {
			rules = append(rules, []string{"--sport", from, "--dport", other},
				[]string{"--sport", other, "--dport", from})
		}
	}
	for _, rule := range rules {
		if err := iptables("-I", rule); err != nil {
			return errors.Join(fmt.Errorf("cut a member off: %w", err), g.Restore())
		}
		g.mu.Lock()
		g.rules = append(g.rules, rule)
		g.mu.Unlock()
	}
	return nil
}

// Restore removes all blocks.
func (g *SQLGroup) Restore() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	var problems []error
	for _, rule := range g.rules {
		problems = append(problems, iptables("-D", rule))
	}
	g.rules = nil
	return errors.Join(problems...)
}

// iptables inserts (-I) or deletes (-D) a rule that drops packets on loopback.
func iptables(what string, rule []string) error {
	args := append([]string{"-w", what, "INPUT", "-i", "lo", "-p", "tcp"}, rule...)
	if out, err := exec.Command("iptables",
		append(args, "-j", "DROP")...).CombinedOutput(); err != nil {
		return fmt.Errorf("iptables %v: %w: %s", args, err, out)
	}
	return nil
}

// connections returns the local ports of a member's outgoing connections, by destination port.
func (g *SQLGroup) connections(m *SQLServer) (map[string][]string, error) {
	out, err := exec.Command("ss", "-tnpH").Output()
	if err != nil {
		return nil, fmt.Errorf("list connections: %w", err)
	}
	made, owner := make(map[string][]string), fmt.Sprintf("pid=%d,", m.Pid())
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		if !strings.Contains(line, owner) || len(fields) < 5 {
			continue
		}
		_, from, fromErr := net.SplitHostPort(fields[3])
		_, to, toErr := net.SplitHostPort(fields[4])
		if fromErr == nil && toErr == nil {
			made[to] = append(made[to], from)
		}
	}
	return made, nil
}

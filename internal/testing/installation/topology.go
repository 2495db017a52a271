package installation

import (
	"fmt"
	"strings"
)

// Topology says which servers are several. A installation's handle of such a server (Redis, Rabbit,
// SQL) is the member that matters for the sale: the master that keeps it, the node that leads its
// queue, the primary.
type Topology struct {
	RedisCluster  bool // three masters, each with a replica
	RabbitCluster bool // three nodes with quorum queues
	MySQLGroup    bool // three members of a group, one of them the primary
}

// The names of a Topology's parts, as ParseTopology reads them and String writes them.
const (
	redisCluster  = "redis-cluster"
	rabbitCluster = "rabbit-cluster"
	mysqlGroup    = "mysql-group"
)

// ParseTopology reads a comma list of redis-cluster, rabbit-cluster and mysql-group; "clusters" is
// all three, "" none.
func ParseTopology(list string) (l Topology, err error) {
	for name := range strings.SplitSeq(list, ",") {
		switch name {
		case "":
		case redisCluster:
			l.RedisCluster = true
		case rabbitCluster:
			l.RabbitCluster = true
		case mysqlGroup:
			l.MySQLGroup = true
		case "clusters":
			l = Topology{true, true, true}
		default:
			return l, fmt.Errorf("there is no topology %q", name)
		}
	}
	return l, nil
}

// With adds what another topology has.
func (l Topology) With(other Topology) Topology {
	return Topology{
		l.RedisCluster || other.RedisCluster, l.RabbitCluster || other.RabbitCluster,
		l.MySQLGroup || other.MySQLGroup,
	}
}

// String is the list that ParseTopology reads; "" where every server is one.
func (l Topology) String() string {
	var names []string
	for _, part := range []struct {
		has  bool
		name string
	}{
		{l.RedisCluster, redisCluster},
		{l.RabbitCluster, rabbitCluster},
		{l.MySQLGroup, mysqlGroup},
	} {
		if part.has {
			names = append(names, part.name)
		}
	}
	return strings.Join(names, ",")
}

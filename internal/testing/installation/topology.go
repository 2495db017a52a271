package installation

import (
	"fmt"
	"strings"
)

// Topology selects the servers that run as clusters. The installation's handle of such a server
// (Redis, Rabbit, SQL) is the important member for the sale. This is the master that stores it, the
// node that leads its queue, or the primary.
type Topology struct {
	RedisCluster  bool // three masters, each with a replica
	RabbitCluster bool // three nodes with quorum queues
	MySQLGroup    bool // three members with a single primary
}

// These are the names of a Topology's parts for ParseTopology and String.
const (
	redisCluster  = "redis-cluster"
	rabbitCluster = "rabbit-cluster"
	mysqlGroup    = "mysql-group"
)

// ParseTopology parses a comma-separated list of redis-cluster, rabbit-cluster and mysql-group.
// "clusters" stands for all three, "" for none.
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

// With adds the clusters of another topology.
func (l Topology) With(other Topology) Topology {
	return Topology{
		l.RedisCluster || other.RedisCluster, l.RabbitCluster || other.RabbitCluster,
		l.MySQLGroup || other.MySQLGroup,
	}
}

// String returns the list for ParseTopology. It is "" if all servers are single.
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

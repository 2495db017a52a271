package installation

import (
	"fmt"
	"strings"
)

// Land says which servers are several. A rig's handle of such a server (Redis, Rabbit, SQL) is the member that matters for the sale:
// the master that keeps it, the node that leads its queue, the primary.
type Land struct {
	RedisCluster  bool // three masters, each with a replica
	RabbitCluster bool // three nodes with quorum queues
	MySQLGroup    bool // three members of a group, one of them the primary
}

// The names of a Land's parts, as ParseLand reads them and String writes them.
const (
	redisCluster  = "redis-cluster"
	rabbitCluster = "rabbit-cluster"
	mysqlGroup    = "mysql-group"
)

// ParseLand reads a comma list of redis-cluster, rabbit-cluster and mysql-group; "clusters" is all three, "" none.
func ParseLand(list string) (l Land, err error) {
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
			l = Land{true, true, true}
		default:
			return l, fmt.Errorf("there is no land %q", name)
		}
	}
	return l, nil
}

// With adds what another land has.
func (l Land) With(other Land) Land {
	return Land{l.RedisCluster || other.RedisCluster, l.RabbitCluster || other.RabbitCluster, l.MySQLGroup || other.MySQLGroup}
}

// String is the list that ParseLand reads; "" where every server is one.
func (l Land) String() string {
	var names []string
	for _, part := range []struct {
		has  bool
		name string
	}{{l.RedisCluster, redisCluster}, {l.RabbitCluster, rabbitCluster}, {l.MySQLGroup, mysqlGroup}} {
		if part.has {
			names = append(names, part.name)
		}
	}
	return strings.Join(names, ",")
}

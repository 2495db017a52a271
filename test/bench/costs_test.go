package bench

import (
	"testing"

	"github.com/stretchr/testify/require"

	"flashsale.dev/seckill/internal/capacity"
)

// streamKB is the memory of an event stream with the client's end. It is not measured here.
const streamKB = 69

// result derives the costs from the usage in all rounds.
func (c *calibrator) result() capacity.Calibration {
	c.b.Helper()
	var k capacity.Calibration
	k.API.BaseMB, k.API.ConnectionKB, k.API.StreamKB = c.baseMB, c.connectionKB, streamKB
	k.Redis.SaleBytes = c.saleBytes
	full := pressure(connections)
	for piece, cost := range map[string]*capacity.RequestCost{
		"page": &k.API.Page, "soldOut": &k.API.SoldOut, "limited": &k.API.Limited,
		"status": &k.API.Status,
		"stream": &k.API.Stream, full.of("path"): &k.API.Path, full.of("purchase"): &k.API.Purchase,
	} {
		n := c.done[piece]
		cost.Micros = 1e6 * c.sums[piece][apiCPU] / n
		cost.InBytes, cost.OutBytes = c.sent[piece][0]/n, c.sent[piece][1]/n
	}
	calls := c.fitted("purchase", reserveCalls, apiCPU)
	k.API.Call, k.API.Purchase.Micros = calls.Call, calls.Item
	k.API.Path.Micros = c.fitted("path", pathCalls, apiCPU).Item
	k.Redis.Path = c.fitted("path", pathCalls, redisCPU)
	k.Redis.Reserve = c.fitted("purchase", reserveCalls, redisCPU)
	k.Redis.Status = 1e6 * c.sums["status"][redisCPU] / c.done["status"]
	k.RabbitMQ = c.fitted("purchase", messages, rabbitCPU)
	x := c.fit("purchase", consumerCPU, transactions, messages)
	k.Consumer.Transaction, k.Consumer.Message = capacity.CallCost{Call: x[0], Item: x[2]}, x[1]
	k.MySQL.Transaction = c.fitted("purchase", transactions, mysqlCPU)
	k.MySQL.Status = 1e6 * c.sums["status"][mysqlCPU] / c.done["status"]
	k.MySQL.RedoBytes = c.sums[full.of("purchase")][redoBytes] / c.done[full.of("purchase")]
	c.measureRows(&k.MySQL)
	return k
}

// fitted separates the cost of a call from the cost of an item, over all loads of a piece of work.
func (c *calibrator) fitted(piece, calls, cost string) capacity.CallCost {
	x := c.fit(piece, cost, calls)
	return capacity.CallCost{Call: x[0], Item: x[1]}
}

// fit finds the cost of one of each counter, and of one item behind them.
func (c *calibrator) fit(piece, cost string, counters ...string) []float64 {
	var rows [][]float64
	var values []float64
	for _, l := range loads() {
		u := c.sums[l.of(piece)]
		var row []float64
		for _, name := range counters {
			row = append(row, u[name])
		}
		rows, values = append(rows, append(row, c.done[l.of(piece)])), append(values, 1e6*u[cost])
	}
	return leastSquares(rows, values)
}

// leastSquares finds the cost of one unit of each column. Each row has the counts that led to a
// value. It minimises relative errors by coordinate descent. No cost is below 0.
func leastSquares(rows [][]float64, values []float64) []float64 {
	x := make([]float64, len(rows[0]))
	for range 100_000 {
		for j := range x {
			var up, down float64
			for i, row := range rows {
				if values[i] <= 0 {
					continue
				}
				rest := values[i]
				for k, count := range row {
					if k != j {
						rest -= count * x[k]
					}
				}
				share := row[j] / values[i]
				up, down = up+share*rest/values[i], down+share*share
			}
			if down > 0 {
				x[j] = max(0, up/down)
			}
		}
	}
	return x
}

func TestLeastSquares_SeparatesCosts(t *testing.T) {
	x := leastSquares([][]float64{{10, 10}, {5, 50}, {2, 200}},
		[]float64{10*7 + 10*2, 5*7 + 50*2, 2*7 + 200*2})
	require.InDeltaSlice(t, []float64{7, 2}, x, 1e-6)
	x = leastSquares([][]float64{{1, 2, 3}, {2, 1, 7}, {5, 5, 1}, {1, 9, 9}},
		[]float64{4 + 12, 8 + 28, 20 + 4, 4 + 36})
	require.InDeltaSlice(t, []float64{4, 0, 4}, x, 1e-6)
}

// measureRows measures the size of orders in the database. The servers keep no binlog here. Its
// size is estimated from the widths of the rows in row events.
func (c *calibrator) measureRows(cost *capacity.MySQLCost) {
	c.b.Helper()
	pool := rawPool(c.b, c.DSN)
	defer pool.Close()
	_, err := pool.ExecContext(c.b.Context(), "ANALYZE TABLE orders, buyer_holdings")
	require.NoError(c.b, err)
	var orders, width, bytes float64
	require.NoError(c.b, pool.QueryRowContext(c.b.Context(), `SELECT COUNT(*),
		AVG(LENGTH(order_sn) + LENGTH(status) + LENGTH(failure_reason) + LENGTH(name) + LENGTH(phone))
		FROM orders`).Scan(&orders, &width))
	require.NoError(c.b, pool.QueryRowContext(c.b.Context(), `SELECT SUM(data_length + index_length)
		FROM information_schema.tables
		WHERE table_schema = DATABASE() AND table_name IN ('orders', 'buyer_holdings')`).Scan(&bytes))
	const fixed = 7*8 + 6 + 2 + 3*8 + 1 // integers, lengths and NULL maps of both rows
	cost.TableBytes, cost.BinlogBytes = bytes/orders, width+fixed
}

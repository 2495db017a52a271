package httpapi

import (
	"encoding/csv"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"flashsale.dev/seckill/internal/order"
)

// exportPage is how many orders are in memory at a time.
const exportPage = 500

// wantsCSV tells whether a list is asked for as a file.
func wantsCSV(r *request) bool {
	format := r.OneOf("format", "", "csv", "json")
	return format == "csv" || format == "" && strings.HasPrefix(r.header.Get("Accept"), "text/csv")
}

// exportOrders writes a sale's orders row by row, newest first, in memory that does not grow with them: the shipping
// list, so names and phone numbers are whole. Whoever could not read it to its end sees a broken transfer, never a
// shorter file.
func (a *api) exportOrders(r *request, goodsID int64, status order.Status, first []order.Order) response {
	return response{stream: func(c *gin.Context) {
		c.Header("Content-Type", "text/csv; charset=utf-8; header=present")
		c.Header("Content-Disposition", `attachment; filename="orders-`+strconv.FormatInt(goodsID, 10)+`.csv"`)
		if c.Request.Method == http.MethodHead { // the server would throw every row away, after MySQL has read it
			c.Status(http.StatusOK)
			c.Writer.WriteHeaderNow()
			return
		}
		rc := http.NewResponseController(c.Writer)
		w := csv.NewWriter(c.Writer)
		_ = w.Write(exportHeader()) // errors stay in the writer until Error is asked
		for page := first; len(page) > 0; {
			_ = rc.SetWriteDeadline(time.Now().Add(streamWrite)) // a recorder in a test has no deadlines
			for _, o := range page {
				_ = w.Write(exportRow(o, a.openPhone(o)))
			}
			if w.Flush(); w.Error() != nil || len(page) < exportPage {
				break
			}
			var err error
			page, err = a.Orders.OfGoods(c.Request.Context(), r.actor, goodsID, status, page[len(page)-1].OrderSn, exportPage)
			if err != nil {
				panic(http.ErrAbortHandler)
			}
		}
		w.Flush()
	}}
}

func exportHeader() []string {
	return []string{
		"orderSn", "status", "failureReason", "goodsId", "buyerId", "quantity", "amount", "name", "phoneNumber",
		"createdAt", "payBy", "paidAt", "closedAt",
	}
}

func exportRow(o order.Order, phone string) []string {
	return []string{
		o.OrderSn, string(o.Status), string(o.FailureReason), strconv.FormatInt(o.GoodsID, 10), strconv.FormatInt(o.BuyerID, 10),
		strconv.FormatInt(o.Quantity, 10), strconv.FormatInt(o.Amount, 10), escapeFormula(o.Name), escapeFormula(phone),
		formatTime(o.CreatedAt), formatTime(o.PayBy), formatTime(o.PaidAt), formatTime(o.ClosedAt),
	}
}

// escapeFormula keeps a spreadsheet from taking a buyer's text for a formula (OWASP, "CSV injection").
func escapeFormula(s string) string {
	if s != "" && strings.ContainsRune("=+-@\t\r", rune(s[0])) {
		return "'" + s
	}
	return s
}

func formatTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	b, _ := timestamp(t).AppendText(nil) // it can't fail
	return string(b)
}

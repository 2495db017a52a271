package sqlstore

import (
	"context"
	"errors"
	"strings"
	"time"

	"gorm.io/gorm"

	"flashsale.dev/seckill/internal/apierror"
	"flashsale.dev/seckill/internal/event"
	"flashsale.dev/seckill/internal/seckill/salechange"
	"flashsale.dev/seckill/internal/webhook"
)

// endpointRow is a webhook's endpoint, to which events are sent.
type endpointRow struct {
	ID             string `gorm:"primaryKey"`
	OwnerID        string
	AllSales       bool
	URL            string
	EventTypes     []event.Type `gorm:"serializer:json"`
	MaxBatch       int64
	MaxPerSecond   int64
	Enabled        bool
	Secret         string
	OldSecret      string
	OldSecretUntil *int64
	Position       int64
	DueAt          int64
	Lease          string
	LeaseUntil     int64
	FailingSince   *int64
	Retries        int64
	Created        int64 `gorm:"column:created_at"`
	Updated        int64 `gorm:"column:updated_at"`
}

func (endpointRow) TableName() string { return "webhook_endpoints" }

func rowOfEndpoint(e webhook.Endpoint) endpointRow {
	return endpointRow{
		ID: e.ID, OwnerID: e.OwnerID, AllSales: e.AllSales, URL: e.URL, EventTypes: listOf(e.Types),
		MaxBatch: e.MaxBatch, MaxPerSecond: e.MaxPerSecond, Enabled: e.Enabled, Secret: e.Secret,
		OldSecret:      strings.Join(e.OldSecrets, " "), // each has at most 116 characters
		OldSecretUntil: millis(e.OldSecretUntil), Position: e.Position,
		DueAt: e.DueAt.UnixMilli(), FailingSince: millis(e.FailingSince),
		Created: e.CreatedAt.UnixMilli(), Updated: e.UpdatedAt.UnixMilli(),
	}
}

func (r endpointRow) endpoint() webhook.Endpoint {
	return webhook.Endpoint{
		ID: r.ID, OwnerID: r.OwnerID, AllSales: r.AllSales, URL: r.URL, Types: r.EventTypes,
		MaxBatch: r.MaxBatch, MaxPerSecond: r.MaxPerSecond, Enabled: r.Enabled, Secret: r.Secret,
		OldSecrets: strings.Fields(r.OldSecret), OldSecretUntil: timeOf(r.OldSecretUntil),
		Position: r.Position,
		DueAt:    timeOf(&r.DueAt), Lease: r.Lease, FailingSince: timeOf(r.FailingSince),
		Retries: r.Retries, CreatedAt: timeOf(&r.Created), UpdatedAt: timeOf(&r.Updated),
	}
}

// deliveryRow is one batch of events for an endpoint.
type deliveryRow struct {
	EndpointID   string `gorm:"primaryKey"`
	ID           string `gorm:"primaryKey"`
	FirstAfter   int64
	LastPosition int64
	EventTypes   []event.Type `gorm:"serializer:json"`
	Size         int64
	State        webhook.State
	Attempts     int64
	Retried      bool
	HTTPStatus   int
	Problem      webhook.Problem
	Created      int64 `gorm:"column:created_at"`
	AttemptedAt  *int64
	NextAt       *int64
	EndedAt      *int64
}

func (deliveryRow) TableName() string { return "webhook_deliveries" }

func rowOfDelivery(d webhook.Delivery) deliveryRow {
	return deliveryRow{
		EndpointID: d.EndpointID, ID: d.ID, FirstAfter: d.After, LastPosition: d.To,
		EventTypes: listOf(d.Types), Size: d.Events, State: d.State, Attempts: d.Attempts,
		Retried: d.Retried, HTTPStatus: d.Status, Problem: d.Problem,
		Created: d.CreatedAt.UnixMilli(), AttemptedAt: millis(d.LastAt), NextAt: millis(d.NextAt),
		EndedAt: millis(d.EndedAt),
	}
}

func (r deliveryRow) delivery() webhook.Delivery {
	return webhook.Delivery{
		ID: r.ID, EndpointID: r.EndpointID, After: r.FirstAfter, To: r.LastPosition,
		Types: r.EventTypes, Events: r.Size, State: r.State, Attempts: r.Attempts,
		Retried: r.Retried, Status: r.HTTPStatus, Problem: r.Problem,
		CreatedAt: timeOf(&r.Created), LastAt: timeOf(r.AttemptedAt), NextAt: timeOf(r.NextAt),
		EndedAt: timeOf(r.EndedAt),
	}
}

// listOf returns no nil, which GORM would store as NULL.
func listOf(types []event.Type) []event.Type { return append([]event.Type{}, types...) }

// CreateEndpoint stores an endpoint at the present end of the events and sets its Position, or
// returns a Conflict if its owner has webhook.MaxEndpoints. The lock of the head makes concurrent
// calls count one after the other: the endpoints of an owner who has none yet cannot be locked. An
// id that is stored is that of a transaction whose commit had no answer.
func (s *Store) CreateEndpoint(ctx context.Context, e *webhook.Endpoint) error {
	row := rowOfEndpoint(*e)
	return s.inTx(ctx, "create a webhook", func(tx *gorm.DB) error {
		head, err := lockHead(tx)
		if err != nil {
			return err
		}
		stored, err := findEndpoint(tx, row.ID)
		if !errors.Is(err, webhook.ErrNoSuchEndpoint) {
			e.Position = stored.Position
			return err
		}
		row.Position, e.Position = head.Position, head.Position
		own, err := count[endpointRow]("count webhooks",
			tx.Where("owner_id = ? AND all_sales = ?", row.OwnerID, row.AllSales))
		if err != nil {
			return err
		}
		if own >= webhook.MaxEndpoints {
			return apierror.New(apierror.Conflict, "you have %d webhooks, which is the most", own)
		}
		if err := tx.Create(&row).Error; err != nil {
			return err
		}
		return auditEndpoint(tx, salechange.ActCreateWebhook, endpointRow{}, row, e.CreatedAt)
	})
}

// FindEndpoint returns an endpoint, or webhook.ErrNoSuchEndpoint.
func (s *Store) FindEndpoint(ctx context.Context, id string) (webhook.Endpoint, error) {
	row, err := findEndpoint(s.read(ctx), id)
	return row.endpoint(), wrapError("find a webhook", err)
}

func findEndpoint(q *gorm.DB, id string) (endpointRow, error) {
	return take[endpointRow](q.Where("id = ?", id), webhook.ErrNoSuchEndpoint)
}

// EndpointsOf lists at most limit endpoints of a merchant (empty: of all), oldest first, with ids
// after the given one (empty: from the oldest).
func (s *Store) EndpointsOf(
	ctx context.Context, ownerID, after string, limit int,
) ([]webhook.Endpoint, error) {
	q := s.read(ctx).Where("id > ?", after)
	if ownerID != "" {
		q = q.Where("owner_id = ? AND all_sales = 0", ownerID)
	}
	return list("list webhooks", q.Order("id").Limit(limit), endpointRow.endpoint)
}

// ChangeEndpoint changes what the owner may set and makes the endpoint and its pending delivery
// due, because the change may be the repair. It returns webhook.ErrNoSuchEndpoint if there is none.
func (s *Store) ChangeEndpoint(
	ctx context.Context, id string, now time.Time, change func(*webhook.Endpoint),
) (webhook.Endpoint, error) {
	return inTx(ctx, s, "change a webhook", func(tx *gorm.DB) (webhook.Endpoint, error) {
		row, err := findEndpoint(locked(tx), id)
		if err != nil {
			return webhook.Endpoint{}, err
		}
		e, was := row.endpoint(), row
		change(&e)
		e.UpdatedAt, e.DueAt = now, now
		row = rowOfEndpoint(e)
		err = tx.Exec(`UPDATE webhook_deliveries SET next_at = ? WHERE endpoint_id = ?
			AND state = ?`, now.UnixMilli(), id, webhook.Pending).Error
		if err == nil {
			err = auditChange(tx, was, row, now)
		}
		if err != nil {
			return webhook.Endpoint{}, err
		}
		return e, updateOne(tx.Model(&endpointRow{}).Where("id = ?", id).
			Select("url", "event_types", "max_batch", "max_per_second", "enabled", "secret",
				"old_secret", "old_secret_until", "failing_since", "due_at", "updated_at").
			Updates(&row))
	})
}

// DeleteEndpoint deletes an endpoint and its deliveries, or returns webhook.ErrNoSuchEndpoint.
func (s *Store) DeleteEndpoint(ctx context.Context, id string, now time.Time) error {
	return s.inTx(ctx, "delete a webhook", func(tx *gorm.DB) error {
		was, err := findEndpoint(locked(tx), id)
		if err == nil {
			err = auditEndpoint(tx, salechange.ActDeleteWebhook, was, endpointRow{}, now)
		}
		if err != nil {
			return err
		}
		if err := tx.Where("id = ?", id).Delete(&endpointRow{}).Error; err != nil {
			return err
		}
		return tx.Where("endpoint_id = ?", id).Delete(&deliveryRow{}).Error
	})
}

// Deliveries lists at most limit deliveries of an endpoint in a state (empty: in all), newest
// first, with ids below before (empty: from the newest).
func (s *Store) Deliveries(
	ctx context.Context, endpointID string, state webhook.State, before string, limit int,
) ([]webhook.Delivery, error) {
	q := s.read(ctx).Where("endpoint_id = ?", endpointID)
	if state != "" {
		q = q.Where("state = ?", state)
	}
	return list("list deliveries", newest(q, "id", before, limit), deliveryRow.delivery)
}

// RetryDelivery makes a dead delivery pending again, and a pending one due. The error is
// webhook.ErrNoSuchDelivery, or Conflict for a delivery that succeeded.
func (s *Store) RetryDelivery(
	ctx context.Context, endpointID, id string, now time.Time,
) (webhook.Delivery, error) {
	return inTx(ctx, s, "retry a delivery", func(tx *gorm.DB) (webhook.Delivery, error) {
		endpoint, err := findEndpoint(locked(tx), endpointID)
		if err != nil {
			return webhook.Delivery{}, err
		}
		row, err := take[deliveryRow](tx.Where("endpoint_id = ? AND id = ?", endpointID, id),
			webhook.ErrNoSuchDelivery)
		if err != nil {
			return webhook.Delivery{}, err
		}
		if row.State == webhook.Delivered {
			return webhook.Delivery{}, apierror.New(apierror.Conflict,
				"the delivery has succeeded")
		}
		due := map[string]any{"due_at": now.UnixMilli()}
		if row.State == webhook.Dead {
			due["retries"], row.Retried = endpoint.Retries+1, true
		} else { // SaveProgress keeps it due if an attempt in progress fails
			due["updated_at"] = now.UnixMilli()
		}
		row.State, row.NextAt, row.EndedAt = webhook.Pending, millis(now), nil
		if err := saveDelivery(tx, row); err != nil {
			return webhook.Delivery{}, err
		}
		entry := endpointEntry(tx, salechange.ActRetryDelivery, endpoint, now)
		entry.Became["deliveryId"] = id
		if err := tx.Create(entry).Error; err != nil {
			return webhook.Delivery{}, err
		}
		err = tx.Model(&endpointRow{}).Where("id = ?", endpointID).Updates(due).Error
		return row.delivery(), err
	})
}

// saveDelivery inserts or updates a delivery.
func saveDelivery(tx *gorm.DB, row deliveryRow) error { return tx.Save(&row).Error }

// DueEndpoints lists at most limit enabled endpoints that are due and that nobody serves, the
// longest unserved first. Each has new events, or a delivery to send again. If the server's clock
// was set back since it was served, its lease does not count, and it is due. What its owner has
// made due is due at once, also if the clock was set back since. It lists endpoints whose last
// attempt failed only if failing is true.
//
// One statement moves the endpoints of merchants without new events up to the head. Otherwise each
// event of one merchant would cost a lease and two transactions for every endpoint of the others.
func (s *Store) DueEndpoints(
	ctx context.Context, now time.Time, failing bool, limit int,
) ([]webhook.Endpoint, error) {
	const op = "list due webhooks"
	head, err := s.EventHead(ctx) // before the events: later ones are not passed over
	if err != nil {
		return nil, err
	}
	q := s.read(ctx).Where(`enabled = 1 AND (due_at <= ? OR due_at = updated_at OR retries > 0
			OR lease_until > ?)`, now.UnixMilli(),
		now.Add(webhook.LeaseTime+clockStep).UnixMilli()).
		Where("(position < ? OR retries > 0)", head)
	if !failing {
		q = q.Where("failing_since IS NULL")
	}
	var rows []endpointRow
	err = unleased(q, now).Order("lease_until").Limit(chunkOf(s.db)).Find(&rows).Error
	if err != nil || len(rows) == 0 {
		return nil, wrapError(op, err)
	}
	mayIdle := func(r endpointRow) bool {
		return r.Retries == 0 && r.FailingSince == nil && !r.AllSales
	}
	last, err := s.lastEvents(ctx, filter(rows, mayIdle))
	if err != nil {
		return nil, wrapError(op, err)
	}
	var idle []string
	due := filter(rows, func(r endpointRow) bool {
		idles := mayIdle(r) && last[r.OwnerID] <= r.Position
		if idles {
			idle = append(idle, r.ID)
		}
		return !idles
	})
	if len(idle) > 0 {
		err = unleased(s.read(ctx).Model(&endpointRow{}), now).
			Where("id IN ? AND position < ?", idle, head).
			Updates(map[string]any{"position": head, "lease_until": now.UnixMilli()}).Error
	}
	return mapSlice(due[:min(len(due), limit)], endpointRow.endpoint), wrapError(op, err)
}

// unleased selects endpoints that nobody serves.
func unleased(q *gorm.DB, now time.Time) *gorm.DB {
	return notLater(q, "lease_until", now, webhook.LeaseTime)
}

// lastEvents returns the position of each owner's last event, for owners with an event that one of
// the endpoints lacks. It reads an owner's events from the position of the owner's own endpoints
// on, because the events since another owner's position may be many.
func (s *Store) lastEvents(
	ctx context.Context, endpoints []endpointRow,
) (map[string]int64, error) {
	from := make(map[string]int64, len(endpoints))
	for _, e := range endpoints {
		if first, known := from[e.OwnerID]; !known || e.Position < first {
			from[e.OwnerID] = e.Position
		}
	}
	last := make(map[string]int64, len(from))
	if len(from) == 0 {
		return last, nil
	}
	var lacking []string
	var args []any
	for owner, position := range from {
		lacking = append(lacking, "merchant_id = ? AND position > ?")
		args = append(args, owner, position)
	}
	var found []eventRow
	err := s.read(ctx).Select("merchant_id", "MAX(position) AS position").
		Where(strings.Join(lacking, " OR "), args...).
		Group("merchant_id").Find(&found).Error
	for _, r := range found {
		last[r.MerchantID] = *r.Position
	}
	return last, err
}

// ClaimEndpoint takes the lease of a due endpoint until a moment. Of concurrent callers one gets
// true: the lease that it read is still the last one. Nobody waits for a lock, as with SKIP LOCKED,
// which TiDB does not have.
func (s *Store) ClaimEndpoint(
	ctx context.Context, e webhook.Endpoint, lease string, now, until time.Time,
) (bool, error) {
	q := s.read(ctx).Model(&endpointRow{}).
		Where("id = ? AND lease = ? AND enabled = 1", e.ID, e.Lease)
	res := notLater(q, "lease_until", now, webhook.LeaseTime).
		Updates(map[string]any{"lease": lease, "lease_until": until.UnixMilli()})
	return res.RowsAffected == 1, wrapError("claim a webhook", res.Error)
}

// LeasedEndpoint reads an endpoint that a lease still serves and that is enabled, else
// webhook.ErrLeaseLost.
func (s *Store) LeasedEndpoint(ctx context.Context, id, lease string) (webhook.Endpoint, error) {
	q := s.read(ctx).Where("id = ? AND lease = ? AND enabled = 1", id, lease)
	row, err := take[endpointRow](q, webhook.ErrLeaseLost)
	return row.endpoint(), wrapError("read a webhook", err)
}

// PendingDelivery returns the next delivery to send: one to send again on demand, else the one
// after the endpoint's position. It returns webhook.ErrNoSuchDelivery if there is none.
func (s *Store) PendingDelivery(ctx context.Context, endpointID string) (webhook.Delivery, error) {
	q := s.read(ctx).Where("endpoint_id = ? AND state = ?", endpointID, webhook.Pending)
	row, err := take[deliveryRow](q.Order("retried DESC, id"), webhook.ErrNoSuchDelivery)
	return row.delivery(), wrapError("find a pending delivery", err)
}

// SaveProgress stores the endpoint's position, due time, first failure and whether it is enabled,
// and the delivery if it is not nil, in one transaction. It returns webhook.ErrLeaseLost, with
// nothing stored, if the endpoint has another lease. So it does if the owner has changed the
// endpoint since e was read and d has no attempt: the events were chosen for the former endpoint.
// After an attempt the change is kept, and a failed delivery becomes pending and due in d, too.
func (s *Store) SaveProgress(
	ctx context.Context, e webhook.Endpoint, d *webhook.Delivery,
) error {
	return s.inTx(ctx, "save a webhook's progress", func(tx *gorm.DB) error {
		was, err := take[endpointRow](locked(tx).Where("id = ? AND lease = ?", e.ID, e.Lease),
			webhook.ErrLeaseLost)
		if err != nil {
			return err
		}
		if was.Updated != e.UpdatedAt.UnixMilli() {
			if d == nil || d.Attempts == 0 {
				return webhook.ErrLeaseLost // the endpoint may have other types of events now
			}
			keepChange(was.endpoint(), &e, d)
		}
		if d != nil {
			if err := saveDelivery(tx, rowOfDelivery(*d)); err != nil {
				return err
			}
			if d.Retried && d.State != webhook.Pending {
				was.Retries--
			}
		}
		if was.Retries > 0 { // they do not wait for the delivery after the endpoint's position
			e.DueAt = timeOf(&was.DueAt)
		}
		row := rowOfEndpoint(e)
		return tx.Model(&endpointRow{}).Where("id = ?", e.ID).Updates(map[string]any{
			"position": row.Position, "due_at": row.DueAt, "failing_since": row.FailingSince,
			"enabled": row.Enabled, "retries": was.Retries,
		}).Error
	})
}

// keepChange keeps an owner's change of an endpoint that a dispatcher had read before it. An
// attempt that failed says nothing about the changed endpoint, which may have another URL: its
// delivery is due again, as ChangeEndpoint has made it.
func keepChange(changed webhook.Endpoint, e *webhook.Endpoint, d *webhook.Delivery) {
	e.DueAt, e.Enabled = changed.DueAt, changed.Enabled
	if d.State == webhook.Delivered {
		return
	}
	e.FailingSince, e.Position = changed.FailingSince, changed.Position
	d.State, d.NextAt, d.EndedAt = webhook.Pending, changed.DueAt, time.Time{}
}

// ReleaseEndpoint ends a lease. It keeps the time of the claim, so that the endpoints which nobody
// has served for longer come first. A lease that is lost is no error.
func (s *Store) ReleaseEndpoint(ctx context.Context, id, lease string) error {
	err := s.read(ctx).Exec(`UPDATE webhook_endpoints SET lease_until = lease_until - ?
		WHERE id = ? AND lease = ?`, webhook.LeaseTime.Milliseconds(), id, lease).Error
	return wrapError("release a webhook", err)
}

// CountDeadDeliveries counts the dead deliveries of all endpoints.
func (s *Store) CountDeadDeliveries(ctx context.Context) (int64, error) {
	return count[deliveryRow]("count dead deliveries",
		s.read(ctx).Where("state = ?", webhook.Dead))
}

// deliveredTo returns the position up to which every enabled endpoint has the events or their
// deliveries are dead; the head without endpoints.
func (s *Store) deliveredTo(ctx context.Context) (int64, error) {
	head, err := s.EventHead(ctx)
	if err != nil {
		return 0, err
	}
	first, err := take[endpointRow](s.read(ctx).Where("enabled = 1").Order("position"),
		webhook.ErrNoSuchEndpoint)
	if errors.Is(err, webhook.ErrNoSuchEndpoint) {
		return head, nil
	}
	return min(head, first.Position), err
}

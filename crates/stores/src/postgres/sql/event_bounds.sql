-- events_unnumbered and events_numbered, both from their front.
SELECT (SELECT value FROM windlass.meta WHERE name = 'last_event'),
       (SELECT min(first_no) FROM windlass.events WHERE first_no > 0),
       EXISTS (SELECT FROM windlass.events WHERE first_no = 0 AND count > 0)

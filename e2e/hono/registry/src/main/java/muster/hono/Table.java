package muster.hono;

import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;

import org.eclipse.hono.client.ClientErrorException;
import org.eclipse.hono.deviceregistry.util.Versioned;

/** Rows in memory, each with its version. What the registry would refuse is thrown with the status of HTTP. */
final class Table<K, V> {
    private final Map<K, Versioned<V>> rows = new ConcurrentHashMap<>();

    Versioned<V> create(final K key, final V value) {
        final Versioned<V> row = new Versioned<>(value);
        if (rows.putIfAbsent(key, row) != null) {
            throw new ClientErrorException(409, key + " exists");
        }
        return row;
    }

    Optional<V> find(final K key) {
        return Optional.ofNullable(rows.get(key)).map(Versioned::getValue);
    }

    Versioned<V> read(final K key) {
        final Versioned<V> row = rows.get(key);
        if (row == null) {
            throw new ClientErrorException(404, "no " + key);
        }
        return row;
    }

    synchronized Versioned<V> update(final K key, final Optional<String> version, final V value) {
        final Versioned<V> row = matching(key, version).update(version, () -> value);
        rows.put(key, row);
        return row;
    }

    synchronized V delete(final K key, final Optional<String> version) {
        matching(key, version);
        return rows.remove(key).getValue();
    }

    private Versioned<V> matching(final K key, final Optional<String> version) {
        final Versioned<V> row = read(key);
        if (!row.isVersionMatch(version)) {
            throw new ClientErrorException(412, key + " has another version");
        }
        return row;
    }
}

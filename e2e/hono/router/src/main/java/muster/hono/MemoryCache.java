package muster.hono;

import java.time.Duration;
import java.time.Instant;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;

import org.eclipse.hono.deviceconnection.common.Cache;

import io.vertx.core.Future;
import io.vertx.core.json.JsonObject;

/** A cache in memory whose entries may have an end. */
final class MemoryCache implements Cache<String, String> {
    private final Map<String, Entry> entries = new ConcurrentHashMap<>();

    private record Entry(String value, Instant end) {
        boolean isOver() {
            return Instant.now().isAfter(end);
        }
    }

    @Override
    public Future<JsonObject> checkForCacheAvailability() {
        return Future.succeededFuture(new JsonObject());
    }

    @Override
    public Future<Void> put(final String key, final String value) {
        return put(key, value, 0, TimeUnit.MILLISECONDS);
    }

    @Override
    public Future<Void> put(final String key, final String value, final long lifespan, final TimeUnit unit) {
        // A lifespan of 0 or less is none, as with Infinispan.
        final Instant end = lifespan > 0 ? Instant.now().plus(Duration.of(lifespan, unit.toChronoUnit())) : Instant.MAX;
        entries.put(key, new Entry(value, end));
        return Future.succeededFuture();
    }

    @Override
    public Future<Void> putAll(final Map<? extends String, ? extends String> data) {
        return putAll(data, 0, TimeUnit.MILLISECONDS);
    }

    @Override
    public Future<Void> putAll(
            final Map<? extends String, ? extends String> data, final long lifespan, final TimeUnit unit) {
        data.forEach((key, value) -> put(key, value, lifespan, unit));
        return Future.succeededFuture();
    }

    @Override
    public Future<String> get(final String key) {
        return Future.succeededFuture(find(key).orElse(null));
    }

    @Override
    public Future<Map<String, String>> getAll(final Set<? extends String> keys) {
        final Map<String, String> found = new HashMap<>();
        keys.forEach(key -> find(key).ifPresent(value -> found.put(key, value)));
        return Future.succeededFuture(found);
    }

    @Override
    public Future<Boolean> remove(final String key, final String value) {
        final boolean held = find(key).filter(value::equals).isPresent();
        return Future.succeededFuture(held && entries.remove(key) != null);
    }

    private Optional<String> find(final String key) {
        entries.computeIfPresent(key, (same, entry) -> entry.isOver() ? null : entry);
        return Optional.ofNullable(entries.get(key)).map(Entry::value);
    }
}

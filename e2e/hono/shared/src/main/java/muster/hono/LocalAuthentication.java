package muster.hono;

import java.time.Duration;
import java.time.Instant;
import java.util.Map;

import org.eclipse.hono.auth.Activity;
import org.eclipse.hono.auth.Authorities;
import org.eclipse.hono.auth.HonoUser;
import org.eclipse.hono.auth.HonoUserAdapter;
import org.eclipse.hono.client.ClientErrorException;
import org.eclipse.hono.service.auth.AbstractHonoAuthenticationService;
import org.eclipse.hono.service.auth.HonoSaslAuthenticatorFactory;
import org.eclipse.hono.util.ResourceIdentifier;

import io.vertx.core.Future;
import io.vertx.proton.sasl.ProtonSaslAuthenticatorFactory;
import jakarta.enterprise.inject.Produces;
import jakarta.inject.Singleton;
import org.eclipse.microprofile.config.inject.ConfigProperty;

/**
 * Knows the other services of the platform by one password, and lets them do everything. It stands in for
 * Hono's authentication server, which is not on Maven Central.
 */
@Singleton
public class LocalAuthentication extends AbstractHonoAuthenticationService<Object> {
    @ConfigProperty(name = "platform.password")
    String password;

    @Produces
    @Singleton
    ProtonSaslAuthenticatorFactory authenticators() {
        return new HonoSaslAuthenticatorFactory(this);
    }

    @Override
    public String[] getSupportedSaslMechanisms() {
        return new String[] { "PLAIN" };
    }

    @Override
    public Future<HonoUser> verifyPlain(final String onBehalfOf, final String name, final String given) {
        return password.equals(given) ? Future.succeededFuture(new Service(name)) : refused();
    }

    @Override
    public Future<HonoUser> verifyExternal(final String onBehalfOf, final String subject) {
        return refused();
    }

    private static Future<HonoUser> refused() {
        return Future.failedFuture(new ClientErrorException(401, "not a service of this platform"));
    }

    /** One of the platform's services. */
    private static final class Service extends HonoUserAdapter {
        private final String name;

        Service(final String name) {
            this.name = name;
        }

        @Override
        public String getName() {
            return name;
        }

        @Override
        public Authorities getAuthorities() {
            return new Everything();
        }

        @Override
        public Instant getExpirationTime() {
            return Instant.now().plus(Duration.ofDays(1));
        }
    }

    private static final class Everything implements Authorities {
        @Override
        public boolean isAuthorized(final ResourceIdentifier resource, final Activity intent) {
            return true;
        }

        @Override
        public boolean isAuthorized(final ResourceIdentifier resource, final String operation) {
            return true;
        }

        @Override
        public Map<String, Object> asMap() {
            return Map.of();
        }
    }
}

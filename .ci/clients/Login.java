import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.Properties;

/** Logs in with pgjdbc and says who it is: one line, `ok <role>` or `error <SQLSTATE> <text>`. */
public final class Login {
    /** The arguments are host, port, and then properties of the driver, `name=value`. */
    public static void main(String[] arguments) {
        Properties properties = new Properties();
        for (int i = 2; i < arguments.length; i++) {
            String[] pair = arguments[i].split("=", 2);
            properties.setProperty(pair[0], pair[1]);
        }
        String url = "jdbc:postgresql://" + arguments[0] + ":" + arguments[1] + "/postgres";
        try (Connection connection = DriverManager.getConnection(url, properties);
                PreparedStatement statement = connection.prepareStatement("SELECT current_user, ?::int8")) {
            statement.setLong(1, 7);
            try (ResultSet rows = statement.executeQuery()) {
                rows.next();
                if (rows.getLong(2) != 7) {
                    throw new IllegalStateException("another number");
                }
                System.out.println("ok " + rows.getString(1));
            }
        } catch (SQLException error) {
            System.out.println("error " + error.getSQLState() + " " + causes(error));
        }
    }

    private static String causes(Throwable error) {
        StringBuilder text = new StringBuilder();
        for (Throwable cause = error; cause != null; cause = cause.getCause()) {
            text.append(cause.getMessage()).append(": ");
        }
        return text.toString().replace('\n', ' ');
    }
}

/* The program constancia-trusted-list, which reads one EU trusted list. Only constancia starts it.
 */
#include "trustlist/trusted_list_xml.h"

int main(void)
{
	trusted_list_run();
}
